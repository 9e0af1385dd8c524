// Properties of device kinds on which passes and rules base decisions. Passes and rules read these traits and name no
// device. The traits affect speed and the choice between two correct lowerings, but never results.
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
  bool has_kernels = false;               // loop kernels are generated; otherwise operators are extern calls
  bool all_functions_of_doubles = false;  // code is generated for each; otherwise not for those with exact_doubles
  bool has_scans = false;                 // loop kernels fold in order; otherwise ATen computes running sums
  bool reports_indices = false;           // kernels report indices out of range to the host; otherwise ATen checks them
  bool counts_random_numbers = false;     // eager mode's random numbers are functions of a seed and their positions
  bool lays_out_weights = false;          // libraries take weights in their own layouts (freezing)
  bool filters_as_images = false;         // convolutions read filters in the memory format of the image
  bool bias_after_convolutions = false;   // convolutions add no bias; ATen would add it in a pass of its own
  bool channels_last_gradients = false;   // the same format is faster for gradients of convolutions
  DTypeSet channels_last_convolutions{};  // dtypes of image convolutions which are faster in channels-last format
  DTypeSet call_epilogues{};              // dtypes of products and convolutions whose library can apply an epilogue
};

const DeviceTraits& traits_of(DeviceKind device);

}  // namespace cresset
