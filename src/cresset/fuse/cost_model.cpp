#include "fuse/cost_model.h"

namespace cresset::fuse {

const CostModel& cost_model_of(DeviceKind device) {
  static constexpr CostModel kCpu;
  // Arithmetic is nearly free beside memory, and every kernel less saves the time of its launch. Few long rows are
  // divided among blocks.
  static constexpr CostModel kCuda = {.cheap_operations = 12,
                                      .cheap_operations_without_reads = 24,
                                      .inputs_percent = 60,  // those of a narrower dtype
                                      .heavy_again = 2,
                                      .small_bytes = 1 << 16,
                                      .sibling_share = 16,
                                      .far_apart = 64,
                                      .few_rows = 0};
  switch (device) {
    case DeviceKind::Cpu:
    case DeviceKind::Meta:  // no kernels are generated for it (base/device_traits.h)
      return kCpu;
    case DeviceKind::Cuda:
      return kCuda;
  }
  return kCpu;
}

}  // namespace cresset::fuse
