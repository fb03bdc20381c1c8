// Tests of harness/models: the list itself, names, degrees, and what a wrong list is told. Run by ctest as unit.models.
#include <boost/test/unit_test.hpp>

#include <fulcrum/core/rules.h>

#include <functional>
#include <set>

#include "harness/input_error.hpp"
#include "harness/models.hpp"

using namespace fulcrum;
using namespace fulcrum::harness;

namespace {

std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// The list's own header, and one model of it as a line.
std::string header() {
  return "model\talso\thidden\tinput\tintermediate\texperts\ttop_k\tshared_experts\tshared_intermediate\tactivation\t"
         "gated\tbias\tlayers\tmoe_layers\tnvfp4\tsource\tnote\n";
}
std::string line(const std::string& experts) {
  return "owner/some-model\tother; third\t256\t\t512\t" + experts + "\t2\t0\t\tsilu\t1\t0\t4\t\t\tconfig\t\n";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(models)

BOOST_AUTO_TEST_CASE(every_model_has_problems_that_the_default_runs) {
  BOOST_TEST(fulcrum::harness::models().size() == 44u);
  std::set<std::string> names;
  for (const Model& model : fulcrum::harness::models()) {
    BOOST_TEST(names.insert(model.name).second, model.name << " is listed twice");
    for (const uint32_t degree : legal_degrees(model)) {
      const std::vector<Problem> problems = model_problems({model.name, degree, {16}});
      BOOST_REQUIRE(problems.size() == 2u);
      for (const Problem& problem : problems) {
        const Config config = default_config(kernel_kind(problem.shape), Arch{90});
        const char* reason = illegal_reason(config, Arch{90}, problem.shape);
        BOOST_TEST(reason == nullptr, model.name << " tp " << degree << ": " << reason);
        BOOST_TEST(problem.bias == model.bias);
      }
      BOOST_TEST(problems[0].shape.k == model.input());
      BOOST_TEST(problems[0].shape.n == (model.gated ? 2 : 1) * model.intermediate / degree);
      BOOST_TEST(problems[1].shape.k == model.intermediate / degree);
      BOOST_TEST(problems[1].shape.n == model.input());
    }
  }
}

BOOST_AUTO_TEST_CASE(dimensions_of_known_models) {
  const Model& deepseek = find_model("deepseek-ai/DeepSeek-V3");
  BOOST_TEST(deepseek.hidden == 7168u);
  BOOST_TEST(deepseek.intermediate == 2048u);
  BOOST_TEST(deepseek.experts == 256u);
  BOOST_TEST(deepseek.top_k == 8u);
  const Model& oss = find_model("gpt-oss-20b");
  BOOST_TEST(oss.hidden == 2880u);
  BOOST_TEST(oss.experts == 32u);
  BOOST_TEST(oss.bias);
  BOOST_TEST((legal_degrees(oss) == std::vector<uint32_t>{1, 2, 4}));  // 2880 / 8 = 360 is no multiple of 16
  const Model& nemotron = find_model("Nemotron-3-Super-120B-A12B");
  BOOST_TEST(nemotron.top_k == 22u);
  BOOST_TEST(!nemotron.gated);
  BOOST_TEST(nemotron.input() == 1024u);  // experts read a latent row
}

BOOST_AUTO_TEST_CASE(names) {
  BOOST_TEST(find_model("DEEPSEEK-V3").name == "deepseek-ai/DeepSeek-V3");
  BOOST_TEST(find_model("OLMoE").release() == "OLMoE-1B-7B");  // the beginning of one
  BOOST_TEST(error_of([] { find_model("glm-4"); }).find("'glm-4' begins the names of GLM-4.5-Air, GLM-4.5") == 0u);
  const std::string unknown = error_of([] { find_model("Mixtrl-8x7B"); });
  BOOST_TEST(unknown.find("there is no model 'Mixtrl-8x7B'; the closest are Mixtral-8x7B") == 0u, unknown);
  BOOST_TEST(
      error_of([] {
        model_problems({"gpt-oss-20b", 8, {16}});
      }) ==
      "tensor parallel 8 cuts the intermediate size 2880 of gpt-oss-20b into 360, which is no multiple of the 16 "
      "columns that share a scale; it may be 1, 2, 4");
  BOOST_TEST(error_of([] {
               model_problems({"gpt-oss-20b", 3, {16}});
             }) == "tensor parallel 3 is not one of 1, 2, 4, 8");
}

BOOST_AUTO_TEST_CASE(a_list_is_read) {
  const std::vector<Model> read = read_models("# a comment\n" + header() + line("8"), "list");
  BOOST_REQUIRE(read.size() == 1u);
  BOOST_TEST(read[0].experts == 8u);
  BOOST_TEST((read[0].also == std::vector<std::string>{"other", "third"}));
  BOOST_TEST(!read[0].latent.has_value());
  BOOST_TEST(read[0].input() == 256u);
  BOOST_TEST(!read[0].moe_layers.has_value());
}

BOOST_AUTO_TEST_CASE(a_wrong_list_is_refused) {
  BOOST_TEST(error_of([] { read_models("model\thidden\n", "list"); }) ==
             "list:1: this is not the header of a list of models; it begins with 'model\thidden'");
  BOOST_TEST(error_of([] { read_models(header() + line("8x"), "list"); }) ==
             "list:2: '8x' cannot be the experts of a model");
  BOOST_TEST(error_of([] { read_models(header() + "a\tb\n", "list"); }) ==
             "list:2: a model has 17 columns, this line 2");
}

BOOST_AUTO_TEST_SUITE_END()
