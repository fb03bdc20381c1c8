// Each embedded header that NVRTC may be given (.h, .cuh) compiles alone, from the text embedded in this program.
//
// Run by ctest as headers.nvrtc_alone.
#include <fulcrum_embedded_headers.hpp>

#include <boost/test/unit_test.hpp>

#include <string>

BOOST_AUTO_TEST_SUITE(nvrtc_alone)

BOOST_AUTO_TEST_CASE(every_header) {
  fulcrum::jit::Options options;
  options.headers.files = fulcrum::embedded_headers;
  options.headers.num_files = fulcrum::num_embedded_headers;
  options.cache_folder = "";
  for (fulcrum::uint64_t i = 0; i < fulcrum::num_embedded_headers; ++i) {
    const std::string path = fulcrum::embedded_headers[i].path;
    if (path.ends_with(".def")) continue;
    const std::string source = "#include <" + path + ">\nextern \"C\" __global__ void empty() {}\n";
    const fulcrum::jit::Cubin cubin = fulcrum::jit::compile_source(source, "empty", fulcrum::Arch{90}, options);
    BOOST_TEST(cubin.status.ok(), path << ": " << cubin.explanation << "\n" << cubin.log);
  }
}

BOOST_AUTO_TEST_SUITE_END()
