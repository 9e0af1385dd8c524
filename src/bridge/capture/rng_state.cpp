#include "bridge/capture/rng_state.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <cstring>
#include <mutex>
#include <typeinfo>

#include "bridge/capture/capture.h"

namespace cresset::bridge {
namespace {

class WatchedGenerator final : public at::CPUGeneratorImpl {
 public:
  using at::CPUGeneratorImpl::CPUGeneratorImpl;

  void set_current_seed(uint64_t seed) override {
    before();
    at::CPUGeneratorImpl::set_current_seed(seed);
  }
  uint64_t current_seed() const override {
    before();
    return at::CPUGeneratorImpl::current_seed();
  }
  uint64_t seed() override {
    before();
    return at::CPUGeneratorImpl::seed();
  }
  void set_state(const c10::TensorImpl& state) override {
    before();
    at::CPUGeneratorImpl::set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    before();
    return at::CPUGeneratorImpl::get_state();
  }

 private:
  void before() const {
    Capture* capture = Capture::current();
    // Recording: a request by cresset itself.
    if (capture == nullptr || capture->closed() || capture->recording > 0) return;
    // torch's bindings hold the generator's lock here, but the recorded operators need it.
    auto& mutex = const_cast<WatchedGenerator*>(this)->mutex_;
    const bool was_held = !mutex.try_lock();
    mutex.unlock();
    capture->flush({BreakKind::RandomNumbers, "the call seeds torch's random numbers, or asks for their state"});
    if (was_held) mutex.lock();
  }
};
static_assert(sizeof(WatchedGenerator) == sizeof(at::CPUGeneratorImpl));

at::Tensor get_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

// Returns an empty tensor, because a graph operator needs a result.
at::Tensor set_state(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
  return at::empty({0}, at::kByte);
}

// The state of a CUDA device's default generator.
at::Generator cuda_generator(int64_t index) {
  return at::globalContext().defaultGenerator(c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index)));
}

at::Tensor get_cuda_state(int64_t index) {
  at::Generator generator = cuda_generator(index);
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

at::Tensor set_cuda_state(const at::Tensor& state, int64_t index) {
  at::Generator generator = cuda_generator(index);
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
  return at::empty({0}, at::kByte);
}

// No static initializers: a process may hold this library twice, in Python's module and in the C++ library.
void register_operators() {
  if (c10::Dispatcher::singleton().findSchema({"cresset::get_rng_state", ""})) return;
  static auto* const library =
      new torch::Library(torch::Library::FRAGMENT, "cresset", std::nullopt, __FILE__, __LINE__);
  const std::vector<at::Tag> tags = {at::Tag::nondeterministic_seeded};
  library->def(torch::schema("cresset::get_rng_state() -> Tensor"), tags);
  library->def(torch::schema("cresset::set_rng_state(Tensor state) -> Tensor"), tags);
  library->def(torch::schema("cresset::get_cuda_rng_state(int device) -> Tensor"), tags);
  library->def(torch::schema("cresset::set_cuda_rng_state(Tensor state, int device) -> Tensor"), tags);
  const auto add = [](const char* name, auto function) {
    library->impl(name, torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, function));
  };
  add("get_cuda_rng_state", TORCH_FN(get_cuda_state));
  add("set_cuda_rng_state", TORCH_FN(set_cuda_state));
  add("get_rng_state", TORCH_FN(get_state));
  add("set_rng_state", TORCH_FN(set_state));
}

}  // namespace

SavedGenerator::SavedGenerator() : state_(get_state()) {
  if (!at::globalContext().hasCUDA()) return;
  const at::CUDAHooksInterface& cuda = at::detail::getCUDAHooks();
  for (c10::DeviceIndex i = 0; i < cuda.deviceCount(); ++i) {
    if (!cuda.hasPrimaryContext(i)) continue;
    at::Generator generator = cuda_generator(i);
    const std::lock_guard lock(generator.mutex());
    try {
      of_devices_.push_back({generator, generator.current_seed(), generator.get_offset()});
    } catch (const c10::Error&) {  // the stream is recorded: nothing can be read, or drawn twice
    }
  }
}

void SavedGenerator::restore() const {
  set_state(state_);
  for (OfDevice of : of_devices_) {
    const std::lock_guard lock(of.generator.mutex());
    if (of.generator.current_seed() != of.seed) of.generator.set_current_seed(of.seed);
    if (of.generator.get_offset() != of.offset) of.generator.set_offset(of.offset);
  }
}

void watch_default_generator() {
  static std::once_flag once;
  std::call_once(once, [] {
    register_operators();
    const auto sample = c10::make_intrusive<WatchedGenerator>();
    auto* generator = at::check_generator<at::CPUGeneratorImpl>(at::detail::getDefaultCPUGenerator());
    if (typeid(*generator) != typeid(at::CPUGeneratorImpl)) return;  // another library's generator: left unchanged
    std::memcpy(static_cast<void*>(generator), static_cast<const void*>(sample.get()), sizeof(void*));
  });
}

}  // namespace cresset::bridge
