// How fast a layer is repacked, beside a copy of as many bytes.
//
// Run by ctest as device.repack_rate; needs a GPU.
#include "needs_gpu.hpp"

#include <boost/test/unit_test.hpp>

#include "harness/repack_device.hpp"

using namespace fulcrum;
using namespace fulcrum::harness;

BOOST_AUTO_TEST_SUITE(repack_rate, *boost::unit_test::precondition(needs_gpu))

// Half the copy roof is the least that this kernel must reach; a copy of as many bytes runs beside it.
BOOST_AUTO_TEST_CASE(at_least_half_the_copy_rate) {
  for (const CheckpointFormat format : {CheckpointFormat::block36, CheckpointFormat::modelopt}) {
    const CheckpointRecipe recipe{format, ScaleDraw::model, 81, 1280, 4096, 288, 2};
    for (const RepackDirection direction : {RepackDirection::pack, RepackDirection::unpack}) {
      const RepackRate rate = measure_repack(recipe, {CodeWord::f16, KOrder::natural}, direction, 20);
      BOOST_TEST_MESSAGE((direction == RepackDirection::pack ? "pack " : "unpack ")
                         << format_name(format) << ": " << rate.median_us << " us, " << rate.gbps() << " GB/s of "
                         << rate.copy_gbps() << " copied");
      if (direction == RepackDirection::pack) BOOST_TEST(rate.gbps() > 0.5 * rate.copy_gbps());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
