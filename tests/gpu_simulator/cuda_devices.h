// The simulated CUDA devices as torch's core sees them: the current device and stream of a thread, generators, hooks.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

namespace cresset::gpu_simulator {

class SimulatedGpu;

// The GPU behind both devices.
const std::shared_ptr<SimulatedGpu>& gpu();
c10::DeviceIndex current_device();
// The current stream of the device, as the GPU knows it.
void* current_stream(c10::DeviceIndex device);

// The device's default generator, and a new one for the device. Their state is a seed and an offset, as on GPUs; their
// numbers are those of the CPU's generator.
const at::Generator& default_generator(c10::DeviceIndex device);
at::Generator new_generator(c10::DeviceIndex device);
// The seed for the numbers of an operator; advances the offset.
uint64_t next_seed(at::Generator generator);

// Whether torch takes the devices for ones with cuDNN. Only the operators with a kernel in cuda_kernels.cpp then work.
void set_cudnn(bool present);

// Registers device guard, allocator and hooks, once a process, before the first backward pass: autograd makes its
// threads for the devices of that time.
void register_devices();

}  // namespace cresset::gpu_simulator
