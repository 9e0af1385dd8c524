// Notices when Python or C++ code seeds, saves or restores torch's default CPU generator during a capture.
//
// Random operators are recorded, not run: they draw when the program runs. Code which reads or seeds the generator must
// find the state of eager mode. The recorded operators therefore run first and the capture ends: a seed is a side
// effect which no program repeats. Saving and restoring the state (torch.random.fork_rng, torch.utils.checkpoint) is
// recorded by two operators, ordered with the random operators: cresset::get_rng_state() -> Tensor, and
// cresset::set_rng_state(Tensor) -> Tensor, which returns an empty tensor. Two more are for the default generator of a
// CUDA device: cresset::get_cuda_rng_state(int) and cresset::set_cuda_rng_state(Tensor, int).
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <vector>

namespace cresset::bridge {

// Registers the operators and watches the generator for the rest of the process. The generator's vtable pointer is
// replaced by the vtable of a subclass without data members, which first asks the calling thread's capture. Idempotent.
void watch_default_generator();

// The states of the default generators, the CPU's and those of CUDA devices in use. They are restored when a
// computation runs a second time.
class SavedGenerator {
 public:
  SavedGenerator();
  void restore() const;

 private:
  struct OfDevice {
    at::Generator generator;
    uint64_t seed, offset;
  };
  at::Tensor state_;
  std::vector<OfDevice> of_devices_;
};

}  // namespace cresset::bridge
