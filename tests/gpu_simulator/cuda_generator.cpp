#include <ATen/EmptyTensor.h>
#include <ATen/core/Generator.h>

#include <array>
#include <cstring>

#include "cuda_devices.h"
#include "cuda_memory.h"

namespace cresset::gpu_simulator {
namespace {

// The offset of a GPU's generator moves in steps of four numbers.
constexpr uint64_t kStep = 4;

class SimulatedGenerator final : public c10::GeneratorImpl {
 public:
  explicit SimulatedGenerator(c10::DeviceIndex device)
      : GeneratorImpl({c10::kCUDA, device}, c10::DispatchKeySet(c10::DispatchKey::CUDA)) {}

  void set_current_seed(uint64_t seed) override {
    seed_ = seed;
    offset_ = 0;
  }
  void set_offset(uint64_t offset) override {
    TORCH_CHECK(offset % kStep == 0, "offset must be a multiple of 4");
    offset_ = offset;
  }
  uint64_t get_offset() const override { return offset_; }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return seed_;
  }
  void set_state(const c10::TensorImpl& state) override {
    TORCH_CHECK(state.device().is_cpu() && state.numel() == kStateBytes, "RNG state is wrong size");
    const auto* bytes = static_cast<const char*>(state.data());
    std::memcpy(&seed_, bytes, sizeof(seed_));
    std::memcpy(&offset_, bytes + sizeof(seed_), sizeof(offset_));
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    at::TensorBase out = at::detail::empty_cpu({kStateBytes}, at::kByte);
    auto* bytes = static_cast<char*>(out.mutable_data_ptr());
    std::memcpy(bytes, &seed_, sizeof(seed_));
    std::memcpy(bytes + sizeof(seed_), &offset_, sizeof(offset_));
    return out.getIntrusivePtr();
  }

 private:
  static constexpr int64_t kStateBytes = 16;
  SimulatedGenerator* clone_impl() const override {
    auto* const out = new SimulatedGenerator(device().index());
    out->seed_ = seed_;
    out->offset_ = offset_;
    return out;
  }

  uint64_t seed_ = c10::default_rng_seed_val, offset_ = 0;
};

}  // namespace

at::Generator new_generator(c10::DeviceIndex device) { return at::make_generator<SimulatedGenerator>(device); }

const at::Generator& default_generator(c10::DeviceIndex device) {
  static const auto* const generators = new std::array<at::Generator, kDevices>{new_generator(0), new_generator(1)};
  return generators->at(static_cast<size_t>(device));
}

uint64_t next_seed(at::Generator generator) {
  std::lock_guard lock(generator.mutex());
  const uint64_t offset = generator.get_offset();
  generator.unsafeGetGeneratorImpl()->set_offset(offset + kStep);
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;  // spreads the offsets over the seeds
  return generator.current_seed() + offset * kOdd;
}

}  // namespace cresset::gpu_simulator
