// A tiny engine, built by each documented way of taking fulcrum (tests/embed/run): it loads a table, takes the kernel
// that is compiled in and plans with it. On a machine without a GPU the plan is a Status that says so, and nothing
// crashes.
//   usage: engine TABLE; exit code 0 when everything is as it should be
#include <fulcrum/fulcrum.hpp>

#include <cstdio>

#include "kernels.hpp"

namespace {

int fail(const char* step, const fulcrum::Status& status) {
  std::printf("%s: %s\n", step, fulcrum::message(status).c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto table = fulcrum::Table::load(argv[1]);
  if (!table.ok()) return fail("table", table.status());
  if (table->rows().empty()) return fail("table", fulcrum::make_error(fulcrum::Code::not_found, "no rows"));

  const fulcrum::Row& row = table->rows()[0];
  const auto kernel = fulcrum::find_kernel(engine_registry(), row.config, fulcrum::kernel_kind(row.shape));
  if (!kernel.ok()) return fail("kernel", kernel.status());

  const auto plan = fulcrum::make_plan(*kernel, row.shape, fulcrum::layout_of(row.config), row.tokens_last);
  if (plan.ok()) {
    std::printf("planned: %u resident blocks\n", plan->resident_blocks);
    return 0;
  }
  std::printf("plan: %s\n", fulcrum::message(plan.status()).c_str());
  const int devices = fulcrum::cuda_api::num_devices().ok() ? *fulcrum::cuda_api::num_devices() : 0;
  const bool foreign_gpu = devices > 0 && plan.status().code == fulcrum::Code::unsupported;  // not the table's
  return foreign_gpu || (devices == 0 && plan.status().code == fulcrum::Code::no_device) ? 0 : 1;
}
