// The compile cache and NVRTC: one compile a key across threads and processes, survival of kill -9 and damage, and what
// is said when something is missing. Needs NVRTC, no GPU.
//
// Run by ctest as unit.jit_cache and unit.jit_compile.
#include "spawn.hpp"
#include "temporary_folder.hpp"

#include <boost/test/unit_test.hpp>
#include <fulcrum/jit.hpp>

#include <random>
#include <sys/resource.h>
#include <thread>

using namespace fulcrum;

namespace {

constexpr Arch sm_90{90};

/// A kernel whose code depends on `number`.
std::string kernel_text(const std::string& entry, int number) {
  return "extern \"C\" __global__ void " + entry +
         "(float* out, int n) { for (int i = 0; i < n; ++i) out[i] = out[i] * " + std::to_string(number) +
         ".0f + out[i + 1]; }\n";
}

/// Options with a cache of their own, that go with the temporary folder.
jit::Options cached_in(const std::string& folder) {
  jit::Options options;
  options.cache_folder = folder.c_str();
  return options;
}

std::string include_folder() { return std::string(FULCRUM_TEST_DATA) + "/../../include"; }

void check_ok(const jit::Cubin& cubin) {
  BOOST_REQUIRE_MESSAGE(cubin.status.ok(), cubin.explanation + "\n" + cubin.log);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(jit_cache)

// Compiles in a child process when its parent asked for it; alone it does nothing.
BOOST_AUTO_TEST_CASE(child) {
  const char* folder = std::getenv("FULCRUM_TEST_CHILD");
  if (folder == nullptr) return;
  const std::string cache = folder;
  const jit::Cubin cubin = jit::compile_source(kernel_text("k", 7), "k", sm_90, cached_in(cache));
  write_text(cache + "/result" + std::to_string(getpid()), !cubin.status.ok() ? "failed"
                                                           : cubin.from_cache ? "cached"
                                                                              : "compiled");
  std::_Exit(cubin.status.ok() ? 0 : 1);
}

BOOST_AUTO_TEST_CASE(sixteen_processes_compile_once) {
  const TemporaryFolder folder;
  std::vector<pid_t> children;
  for (int index = 0; index < 16; ++index)
    children.push_back(spawn_case("jit_cache/child", {"FULCRUM_TEST_CHILD=" + folder.path()}));
  int num_compiled = 0;
  for (const pid_t child : children) {
    BOOST_TEST(wait_for(child) == 0);
    num_compiled += read_text(folder / ("result" + std::to_string(child))) == "compiled" ? 1 : 0;
  }
  BOOST_TEST(num_compiled == 1);
  BOOST_TEST(folder.count(".cubin") == 1);
  BOOST_TEST(folder.count(".lock") == 0);
  BOOST_TEST(folder.count(".tmp") == 0);
}

BOOST_AUTO_TEST_CASE(threads_compile_once) {
  const TemporaryFolder folder;
  std::vector<jit::Cubin> cubins(8);
  std::vector<std::thread> threads;
  for (jit::Cubin& cubin : cubins) {
    threads.emplace_back(
        [&] { cubin = jit::compile_source(kernel_text("k", 8), "k", sm_90, cached_in(folder.path())); });
  }
  for (std::thread& thread : threads) thread.join();
  int num_compiled = 0;
  for (const jit::Cubin& cubin : cubins) {
    check_ok(cubin);
    num_compiled += cubin.from_cache ? 0 : 1;
    BOOST_TEST((cubin.code == cubins[0].code));
  }
  BOOST_TEST(num_compiled == 1);
}

BOOST_AUTO_TEST_CASE(kill_at_any_moment_leaves_a_good_cache) {
  const TemporaryFolder folder;
  std::minstd_rand random(1);
  for (int round = 0; round < 8; ++round) {
    const pid_t child = spawn_case("jit_cache/child", {"FULCRUM_TEST_CHILD=" + folder.path()});
    usleep(random() % 400000);  // a compile takes 0.1 to 0.4 s
    (void)kill(child, SIGKILL);
    (void)wait_for(child);
  }
  const jit::Cubin cubin = jit::compile_source(kernel_text("k", 7), "k", sm_90, cached_in(folder.path()));
  check_ok(cubin);
  BOOST_TEST(cubin.warning == "");
  BOOST_TEST(jit::compile_source(kernel_text("k", 7), "k", sm_90, cached_in(folder.path())).from_cache);
  BOOST_TEST(folder.count(".tmp") == 0);
}

BOOST_AUTO_TEST_CASE(every_kind_of_damage_is_rebuilt) {
  const TemporaryFolder folder;
  const jit::Cubin first = jit::compile_source(kernel_text("k", 7), "k", sm_90, cached_in(folder.path()));
  check_ok(first);
  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) path = entry.path().string();
  const std::string good = read_text(path);
  std::string flipped = good;
  flipped[good.size() / 2] ^= 1;
  std::string huge = good;
  huge[55] = '\x7F';  // the top byte of the code's size
  for (const std::string& damaged :
       {std::string(), good.substr(0, 20), good.substr(0, good.size() - 1), good + "x", flipped, huge}) {
    write_text(path, damaged);
    const jit::Cubin again = jit::compile_source(kernel_text("k", 7), "k", sm_90, cached_in(folder.path()));
    check_ok(again);
    BOOST_TEST(!again.from_cache);
    BOOST_TEST((again.code == first.code));
    BOOST_TEST((read_text(path).size() > 0));
    BOOST_TEST(jit::compile_source(kernel_text("k", 7), "k", sm_90, cached_in(folder.path())).from_cache);
  }
  jit::CacheEntry entry;
  const std::string name = std::filesystem::path(path).stem().string();
  const std::string other = std::string(31, '0') + "1";
  std::filesystem::copy_file(path, folder / (other + ".cubin"));
  BOOST_TEST(jit::read_entry(folder.path(), name, entry));
  BOOST_TEST(!jit::read_entry(folder.path(), other, entry));  // a good file under another key
}

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_be_written_costs_one_warning) {
  const TemporaryFolder folder;
  write_text(folder / "file", "");
  const jit::Cubin cubin = jit::compile_source(kernel_text("k", 7), "k", sm_90, cached_in(folder / "file/cache"));
  check_ok(cubin);
  BOOST_TEST(cubin.warning.find("cannot be used") != std::string::npos);
  BOOST_TEST(jit::compile_source(kernel_text("k", 7), "k", sm_90, cached_in("")).warning ==
             "");  // no cache was asked for
}

BOOST_AUTO_TEST_CASE(a_full_disk_leaves_nothing_behind) {
  const TemporaryFolder folder;
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100, before.rlim_max};  // bytes a file may have: the write fails as on a full disk
  setrlimit(RLIMIT_FSIZE, &small);
  const Status status = jit::write_entry(folder.path(), std::string(32, 'a'), {std::string(1000, 'c'), "log"});
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  BOOST_TEST((status.code == Code::io));
  BOOST_TEST(folder.count("") == 0);
}

BOOST_AUTO_TEST_CASE(a_read_only_cache_still_serves) {
  const TemporaryFolder folder;
  check_ok(jit::compile_source(kernel_text("k", 7), "k", sm_90, cached_in(folder.path())));
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  const jit::Cubin cubin = jit::compile_source(kernel_text("k", 7), "k", sm_90, cached_in(folder.path()));
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
  BOOST_TEST((cubin.from_cache && cubin.warning.empty()));
}

BOOST_AUTO_TEST_CASE(the_key_has_everything_that_code_depends_on) {
  const TemporaryFolder folder;
  const jit::EmbeddedHeader first[] = {{"fulcrum/x.h", "#define X 1\n"}};
  const jit::EmbeddedHeader second[] = {{"fulcrum/x.h", "#define X 2\n"}};
  const std::string source = "#include <fulcrum/x.h>\nextern \"C\" __global__ void k(int* out) { *out = X; }\n";
  jit::Options options = cached_in(folder.path());
  const auto cached = [&](Arch arch) {
    const jit::Cubin cubin = jit::compile_source(source, "k", arch, options);
    BOOST_TEST(cubin.status.ok(), cubin.explanation);
    return cubin.from_cache;
  };
  options.headers = {first, 1, nullptr};
  BOOST_TEST(!cached(sm_90));
  BOOST_TEST(cached(sm_90));
  BOOST_TEST(!cached(Arch{80}));
  setenv("NVRTC_APPEND_FLAGS", "-DY=1", 1);
  BOOST_TEST(!cached(sm_90));
  unsetenv("NVRTC_APPEND_FLAGS");
  BOOST_TEST(cached(sm_90));
  options.headers.files = second;
  BOOST_TEST(!cached(sm_90));
  write_text(folder / "include/fulcrum/x.h", "#define X 1\n");  // a folder with the same text shares the entry
  const std::string include = folder / "include";
  options.headers = {nullptr, 0, include.c_str()};
  BOOST_TEST(cached(sm_90));
}

BOOST_AUTO_TEST_CASE(where_the_cache_is) {
  const char* before = std::getenv("FULCRUM_CACHE_DIR");
  const std::string kept = before != nullptr ? before : "";
  unsetenv("FULCRUM_CACHE_DIR");
  setenv("XDG_CACHE_HOME", "/xdg", 1);
  BOOST_TEST(jit::cache_folder() == "/xdg/fulcrum");
  setenv("XDG_CACHE_HOME", "relative", 1);
  BOOST_TEST(jit::cache_folder().ends_with("/.cache/fulcrum"));
  unsetenv("XDG_CACHE_HOME");
  setenv("FULCRUM_CACHE_DIR", "/own", 1);
  BOOST_TEST(jit::cache_folder() == "/own");
  setenv("FULCRUM_CACHE_DIR", "", 1);
  BOOST_TEST(jit::cache_folder().ends_with("/.cache/fulcrum"));  // as when it is not set
  BOOST_TEST(jit::cache_folder("/named") == "/named");
  if (before != nullptr)
    setenv("FULCRUM_CACHE_DIR", kept.c_str(), 1);
  else
    unsetenv("FULCRUM_CACHE_DIR");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(jit_compile)

BOOST_AUTO_TEST_CASE(a_cubin_says_what_it_is) {
  const std::string spilling =
      "extern \"C\" __global__ void __maxnreg__(32) k(float* p, int n) { float a[64]; for (int i = 0; i < 64; ++i) "
      "a[i] = p[i * n];\n"
      "for (int j = 0; j < n; ++j) for (int i = 0; i < 64; ++i) a[i] = a[i] * a[(i + 7) % 64] + p[j];\n"
      "__shared__ float s[100]; s[threadIdx.x] = a[0]; __syncthreads(); for (int i = 0; i < 64; ++i) p[i] = a[i] + "
      "s[i]; }\n";
  const jit::Cubin cubin = jit::compile_source(spilling, "k", sm_90, cached_in(""));
  check_ok(cubin);
  BOOST_TEST(cubin.info.valid);
  BOOST_TEST(cubin.log.find("Used " + std::to_string(cubin.info.registers) + " registers") != std::string::npos,
             cubin.log);
  BOOST_TEST(cubin.info.registers <= 32u);
  BOOST_TEST(cubin.info.spill_store_bytes > 0u);
  BOOST_TEST(cubin.info.spill_load_bytes > 0u);
  BOOST_TEST(cubin.info.stack_bytes > 0u);
  BOOST_TEST(cubin.info.static_shared_bytes >= 400u);
  BOOST_TEST(cubin.info.ptxas.find('.') != std::string::npos);
  BOOST_TEST(cubin.compile_seconds > 0);
}

BOOST_AUTO_TEST_CASE(the_machine_hash_is_of_code_not_names) {
  const jit::Cubin one = jit::compile_source(kernel_text("one", 5), "one", sm_90, cached_in(""));
  const jit::Cubin two = jit::compile_source(kernel_text("two", 5), "two", sm_90, cached_in(""));
  const jit::Cubin other = jit::compile_source(kernel_text("one", 6), "one", sm_90, cached_in(""));
  BOOST_TEST(one.info.machine == two.info.machine);
  BOOST_TEST(one.info.machine != other.info.machine);
  BOOST_TEST(one.info.machine.ends_with("-" + one.info.ptxas));
}

BOOST_AUTO_TEST_CASE(a_damaged_image_is_read_safely) {
  const jit::Cubin cubin = jit::compile_source(kernel_text("k", 5), "k", sm_90, cached_in(""));
  check_ok(cubin);
  std::minstd_rand random(2);
  for (size_t length = 0; length < cubin.code.size(); length += 13)
    (void)jit::inspect_cubin(cubin.code.substr(0, length), "k");
  for (int round = 0; round < 5000; ++round) {
    std::string damaged = cubin.code;
    for (int flip = 0; flip < 4; ++flip) damaged[random() % damaged.size()] = static_cast<char>(random());
    (void)jit::inspect_cubin(damaged, "k");
  }
  BOOST_TEST(!jit::inspect_cubin("", "k").valid);
  BOOST_TEST(!jit::inspect_cubin(cubin.code, "absent").valid);
}

BOOST_AUTO_TEST_CASE(compile_errors_show_the_first_error) {
  const jit::Cubin cubin =
      jit::compile_source("extern \"C\" __global__ void k() { nonsense; }\n", "k", sm_90, cached_in(""));
  BOOST_TEST((cubin.status.code == Code::compile));
  BOOST_TEST(cubin.explanation.find("\"nonsense\" is undefined") != std::string::npos, cubin.explanation);
  const jit::Cubin missing =
      jit::compile_source("extern \"C\" __global__ void k() {}\n", "other", sm_90, cached_in(""));
  BOOST_TEST((missing.status.code == Code::compile));
}

BOOST_AUTO_TEST_CASE(compile_errors_name_the_config) {
  const TemporaryFolder folder;
  std::filesystem::copy(include_folder(), folder.path(), std::filesystem::copy_options::recursive);
  std::ofstream(folder / "fulcrum/entry.cuh", std::ios::app) << "#error broken on purpose\n";
  jit::Options options = cached_in(folder.path());
  options.headers.folder = folder.path().c_str();
  const KernelKind kind{};
  const jit::Cubin cubin = jit::compile_cubin(default_config(kind, sm_90), kind, sm_90, options);
  BOOST_TEST((cubin.status.code == Code::compile));
  BOOST_TEST(cubin.explanation.find("broken on purpose") != std::string::npos, cubin.explanation);
  BOOST_TEST(cubin.explanation.find("config: family=mma_sync") != std::string::npos, cubin.explanation);
}

BOOST_AUTO_TEST_CASE(an_illegal_config_is_a_reason) {
  Config config = default_config(KernelKind{}, Arch{80});
  config.tile_n = 100;
  const jit::Cubin cubin = jit::compile_cubin(config, KernelKind{}, sm_90, cached_in(""));
  BOOST_TEST((cubin.status.code == Code::illegal_config));
  BOOST_TEST(cubin.explanation.find("tile_n is a multiple of 64") != std::string::npos);
  BOOST_TEST(cubin.explanation.find("config: family=mma_sync") != std::string::npos);
  BOOST_TEST((jit::compile_source(kernel_text("k", 1), "k", Arch{70}, cached_in("")).status.code == Code::unsupported));
}

BOOST_AUTO_TEST_CASE(missing_nvrtc_says_what_to_install) {
  const TemporaryFolder folder;
  jit::Options options = cached_in(folder.path());
  options.nvrtc_path = "/nonexistent";
  const jit::Cubin cubin = jit::compile_source(kernel_text("k", 1), "k", sm_90, options);
  BOOST_TEST((cubin.status.code == Code::not_found));
  BOOST_TEST(cubin.explanation.find("Install the CUDA toolkit 13.0") != std::string::npos);
  BOOST_TEST(cubin.explanation.find("FULCRUM_NVRTC") != std::string::npos);
  write_text(folder / "libnvrtc.so.13", "not a library");
  options.nvrtc_path = folder.path().c_str();
  BOOST_TEST((jit::compile_source(kernel_text("k", 1), "k", sm_90, options).status.code == Code::not_found));
}

BOOST_AUTO_TEST_CASE(an_old_nvrtc_says_both_versions) {
  jit::Nvrtc old;
  old.major = 12;
  old.minor = 0;
  old.num_archs = [](int* count) {
    *count = 2;
    return 0;
  };
  old.archs = [](int* archs) {
    archs[0] = 80;
    archs[1] = 90;
    return 0;
  };
  BOOST_TEST(jit::check_arch(old, sm_90).ok());
  const std::string words = message(jit::check_arch(old, Arch{121}));
  BOOST_TEST(words.find("NVRTC 12.0 is too old for sm_121a, which needs 12.9") != std::string::npos, words);
}

BOOST_AUTO_TEST_CASE(headers_are_needed_and_asked_for) {
  const KernelKind kind{};
  const jit::Cubin none = jit::compile_cubin(default_config(kind, Arch{80}), kind, sm_90, cached_in(""));
  BOOST_TEST((none.status.code == Code::not_found));
  jit::Options options = cached_in("");
  options.headers.folder = "/nonexistent";
  BOOST_TEST((jit::compile_cubin(default_config(kind, Arch{80}), kind, sm_90, options).status.code == Code::not_found));
}

BOOST_AUTO_TEST_CASE(the_default_variant_compiles_and_loads_or_says_why) {
  const TemporaryFolder folder;
  const std::string include = include_folder();
  jit::Options options = cached_in(folder.path());
  options.headers.folder = include.c_str();
  const KernelKind kind{};
  const jit::Cubin cold = jit::compile_cubin(default_config(kind, Arch{80}), kind, sm_90, options);
  check_ok(cold);
  const jit::Cubin warm = jit::compile_cubin(default_config(kind, Arch{80}), kind, sm_90, options);
  BOOST_TEST(warm.from_cache);
  BOOST_TEST_MESSAGE("cold " << cold.compile_seconds << " s, warm " << warm.load_seconds << " s");
  BOOST_TEST(cold.info.spill_store_bytes == 0u);
  const Result<Kernel> kernel = jit::load(warm);
  BOOST_TEST((kernel.ok() || kernel.status().code == Code::no_device), message(kernel.status()));
}

BOOST_AUTO_TEST_SUITE_END()
