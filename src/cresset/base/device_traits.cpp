#include "base/device_traits.h"

namespace cresset {

const DeviceTraits& traits_of(DeviceKind device) {
  static constexpr DeviceTraits kCpu = {
      .has_kernels = true,
      .all_functions_of_doubles = true,
      .lays_out_weights = true,
      .channels_last_convolutions = DTypeSet(DType::F32, DType::BF16),  // of oneDNN
      .call_epilogues = DTypeSet(DType::F32, DType::BF16),
  };
  static constexpr DeviceTraits kCuda = {
      .has_kernels = true,
      .has_scans = true,
      .reports_indices = true,
      .counts_random_numbers = true,
      .filters_as_images = true,
      .bias_after_convolutions = true,
      .channels_last_gradients = true,
      .channels_last_convolutions = DTypeSet(DType::F16, DType::BF16, DType::F32),  // of cuDNN, on tensor cores
  };
  static constexpr DeviceTraits kNone;
  switch (device) {
    case DeviceKind::Cpu:
      return kCpu;
    case DeviceKind::Cuda:
      return kCuda;
    case DeviceKind::Meta:
      return kNone;
  }
  return kNone;
}

}  // namespace cresset
