#include "fuse/cost_model.h"

namespace cresset::fuse {

const CostModel& cost_model_of(DeviceKind device) {
  static constexpr CostModel kCpu;
  switch (device) {
    case DeviceKind::Cpu:
    case DeviceKind::Cuda:  // no kernels are generated for these (base/device_traits.h)
    case DeviceKind::Meta:
      return kCpu;
  }
  return kCpu;
}

}  // namespace cresset::fuse
