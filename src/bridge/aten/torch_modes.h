// torch's modes: settings of the thread and the process that change the meaning of operators. Cache entries of the C++
// interface and of the Python front end are guarded on them.
#pragma once

#include <cstdint>
#include <string>

namespace cresset::bridge {

struct TorchModes {
  bool grad_mode = false, inference_mode = false;
  bool autocast_cpu = false, autocast_cuda = false;
  int8_t autocast_cpu_dtype = 0, autocast_cuda_dtype = 0;
  int8_t default_dtype = 0;
  bool deterministic = false, deterministic_warns = false;
  int8_t cuda_device = 0;      // the thread's current one
  uint8_t attention = 0;       // kernels that torch.backends.cuda allows for it
  int16_t autocast_depth = 0;  // regions that are open
  uint16_t transforms = 0;     // twice the depth of torch.func's transforms, plus 1 inside a level of forward-mode AD
  bool operator==(const TorchModes&) const = default;

  int depth_of_transforms() const { return transforms / 2; }
  bool in_dual_level() const { return transforms % 2 != 0; }  // of torch.autograd.forward_ad

  static TorchModes now();
  // Whether set() can reach these modes from the other ones.
  bool reachable_from(const TorchModes& other) const {
    return inference_mode == other.inference_mode && transforms == other.transforms && cuda_device == other.cuda_device;
  }
  void set() const;  // makes them torch's modes
};

// The number of the thread's current CUDA device. Torch is asked once it uses CUDA: without a driver it would raise.
// Before, the answer is 0, the device with which each thread begins.
int8_t current_cuda_device();
bool cuda_is_in_use();

// The first mode that differs, for a log line; empty where none does.
std::string difference(const TorchModes& expected, const TorchModes& got);

// Whether modes of Python's look at operators or saved tensors in this thread: __torch_function__ and
// __torch_dispatch__ modes, and hooks of saved tensors.
bool python_modes_are_on();

}  // namespace cresset::bridge
