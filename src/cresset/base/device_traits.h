// Facts about kinds of devices that passes and rules decide by: they read these and name no device. Results never
// depend on them, only speed and which of two right ways is taken.
#pragma once

#include "base/device.h"
#include "base/dtype.h"

namespace cresset {

class DTypeSet {
 public:
  template <class... D>
  constexpr explicit DTypeSet(D... dtypes) : bits_((0u | ... | bit(dtypes))) {}
  constexpr bool contains(DType dtype) const { return (bits_ & bit(dtype)) != 0; }

 private:
  static constexpr uint32_t bit(DType dtype) { return 1u << static_cast<unsigned>(dtype); }
  uint32_t bits_;
};

struct DeviceTraits {
  bool has_kernels = false;               // loop kernels are generated for it; else operators are extern calls
  bool lays_out_weights = false;          // libraries take weights in layouts of their own (freezing)
  DTypeSet channels_last_convolutions{};  // convolutions of images that are faster with channels last
  DTypeSet call_epilogues{};              // products and convolutions whose library applies an activation on the way
};

const DeviceTraits& traits_of(DeviceKind device);

}  // namespace cresset
