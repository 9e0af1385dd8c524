// Notices that Python or C++ code seeds, saves or restores torch's default CPU generator while a call is captured.
//
// Random operators are recorded, not run: they draw when the program runs. Whoever looks at the generator or seeds it
// in between must find it as eager would have left it, so what was recorded happens first, and the capture ends there:
// a seed is an effect that no program repeats. What saves the state and restores it (torch.random.fork_rng,
// torch.utils.checkpoint) is recorded instead, by two operators that take their turn among those that draw:
// cresset::get_rng_state() -> Tensor, and cresset::set_rng_state(Tensor) -> Tensor, which gives an empty tensor.
#pragma once

#include <ATen/core/Tensor.h>

namespace cresset::bridge {

// From now on, for as long as the process lives; registers the operators. The generator's class pointer is exchanged
// for that of a class without members of its own, which asks the calling thread's capture first; idempotent.
void watch_default_generator();

// The state of the default generator, to be gone back to where a computation is done a second time.
class SavedGenerator {
 public:
  SavedGenerator();
  void restore() const;

 private:
  at::Tensor state_;
};

}  // namespace cresset::bridge
