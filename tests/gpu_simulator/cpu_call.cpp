#include "cpu_call.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/List.h>
#include <ATen/ops/empty_strided.h>

#include <cstring>
#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "cuda_devices.h"
#include "cuda_memory.h"
#include "simulated_gpu.h"

namespace cresset::gpu_simulator {
namespace {

using c10::IValue;
using c10::StorageImpl;
using c10::TensorImpl;

// Operators whose CUDA kernels take tensors of several devices.
bool takes_all_devices(const std::string& name) {
  static const std::unordered_set<std::string> names{"aten::copy_",
                                                     "aten::_copy_from",
                                                     "aten::_copy_from_and_resize",
                                                     "aten::index",
                                                     "aten::index_put_",
                                                     "aten::_index_put_impl_",
                                                     "aten::is_set_to",
                                                     "aten::set_",
                                                     "aten::_ctc_loss",
                                                     "aten::_ctc_loss_backward"};
  return names.contains(name);
}

// While this object lives, the CPU's default generator draws from the device's sequence: many random operators take no
// generator.
class SeededByDevice {
 public:
  explicit SeededByDevice(c10::DeviceIndex device) : generator_(at::detail::getDefaultCPUGenerator()) {
    const uint64_t seed = next_seed(default_generator(device));
    std::lock_guard lock(generator_.mutex());
    state_ = generator_.get_state();
    generator_.set_current_seed(seed);
  }
  ~SeededByDevice() {
    std::lock_guard lock(generator_.mutex());
    generator_.set_state(state_);
  }
  SeededByDevice(const SeededByDevice&) = delete;
  SeededByDevice& operator=(const SeededByDevice&) = delete;

 private:
  at::Generator generator_;
  at::Tensor state_;
};

bool same_geometry(const TensorImpl& a, const TensorImpl& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() && a.storage_offset() == b.storage_offset();
}

// A dense tensor of the backend in the storage, otherwise like `like`.
at::Tensor tensor_in(c10::Storage storage, c10::DispatchKey backend, const at::Tensor& like) {
  TORCH_CHECK_NOT_IMPLEMENTED(like.layout() == at::kStrided, "simulated CUDA devices have dense tensors only");
  c10::DispatchKeySet keys(backend);
  if (like._is_zerotensor()) keys = keys.add(c10::DispatchKey::ZeroTensor);
  at::Tensor out = at::detail::make_tensor<TensorImpl>(std::move(storage), keys, like.dtype());
  TensorImpl& impl = *out.unsafeGetTensorImpl();
  impl.set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  if (like.is_conj()) impl._set_conj(true);
  if (like.is_neg()) impl._set_neg(true);
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) impl.set_wrapped_number(true);
  return out;
}

// The tensors and storages of a call on both sides.
class Twins {
 public:
  explicit Twins(c10::DeviceIndex device) : device_(device) {}

  at::Tensor to_cpu(const at::Tensor& tensor);
  c10::Storage to_cpu(const c10::Storage& storage);
  // A result. Tensors given on the CPU, and views of them, stay there.
  at::Tensor to_cuda(const at::Tensor& cpu);
  // Gives CUDA tensors the geometry and the memory which the call gave their twins.
  void write_back();

 private:
  struct TensorTwins {
    at::Tensor cuda, cpu;
    const StorageImpl* storage;  // of `cpu`, before the call
  };
  struct StorageTwins {
    c10::Storage cuda, cpu;
    const void* data;  // before the call
  };
  c10::Storage to_cuda(const c10::Storage& cpu);
  void add(const c10::Storage& cuda, const c10::Storage& cpu);

  const c10::DeviceIndex device_;
  std::deque<TensorTwins> tensors_;
  std::deque<StorageTwins> storages_;
  std::unordered_map<const TensorImpl*, const TensorTwins*> tensor_of_;     // by both
  std::unordered_map<const StorageImpl*, const StorageTwins*> storage_of_;  // by both
  std::unordered_set<const StorageImpl*> given_on_cpu_;
};

void Twins::add(const c10::Storage& cuda, const c10::Storage& cpu) {
  const StorageTwins& twins = storages_.emplace_back(cuda, cpu, cpu.data());
  storage_of_[cuda.unsafeGetStorageImpl()] = &twins;
  storage_of_[cpu.unsafeGetStorageImpl()] = &twins;
}

c10::Storage Twins::to_cpu(const c10::Storage& storage) {
  if (storage.device_type() != c10::kCUDA) {
    given_on_cpu_.insert(storage.unsafeGetStorageImpl());
    return storage;
  }
  const auto known = storage_of_.find(storage.unsafeGetStorageImpl());
  if (known != storage_of_.end()) return known->second->cpu;
  void* const data = storage.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get();
  c10::Storage cpu(c10::Storage::use_byte_size_t(), storage.nbytes(), c10::DataPtr(data, c10::kCPU),
                   &view_allocator(storage.device().index()), /*resizable=*/true);
  add(storage, cpu);
  return cpu;
}

at::Tensor Twins::to_cpu(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  if (!tensor.is_cuda()) {
    if (tensor.has_storage()) given_on_cpu_.insert(tensor.storage().unsafeGetStorageImpl());
    return tensor;
  }
  const auto known = tensor_of_.find(tensor.unsafeGetTensorImpl());
  if (known != tensor_of_.end()) return known->second->cpu;
  at::Tensor cpu = tensor_in(to_cpu(tensor.storage()), c10::DispatchKey::CPU, tensor);
  const TensorTwins& twins = tensors_.emplace_back(tensor, cpu, cpu.storage().unsafeGetStorageImpl());
  tensor_of_[tensor.unsafeGetTensorImpl()] = &twins;
  tensor_of_[cpu.unsafeGetTensorImpl()] = &twins;
  return cpu;
}

c10::Storage Twins::to_cuda(const c10::Storage& cpu) {
  const auto known = storage_of_.find(cpu.unsafeGetStorageImpl());
  if (known != storage_of_.end()) return known->second->cuda;
  c10::Storage cuda(c10::Storage::use_byte_size_t(), cpu.nbytes(), adopt(cpu, device_), &cuda_allocator(),
                    /*resizable=*/true);
  add(cuda, cpu);
  return cuda;
}

at::Tensor Twins::to_cuda(const at::Tensor& cpu) {
  if (!cpu.defined() || !cpu.is_cpu()) return cpu;
  const auto known = tensor_of_.find(cpu.unsafeGetTensorImpl());
  if (known != tensor_of_.end()) return known->second->cuda;
  if (cpu.has_storage() && given_on_cpu_.contains(cpu.storage().unsafeGetStorageImpl())) return cpu;
  TORCH_CHECK_NOT_IMPLEMENTED(cpu.layout() == at::kStrided, "simulated CUDA devices have dense tensors only");
  return tensor_in(to_cuda(cpu.storage()), c10::DispatchKey::CUDA, cpu);
}

void Twins::write_back() {
  for (StorageTwins& twins : storages_) {
    if (twins.cpu.data() == twins.data && twins.cpu.nbytes() == twins.cuda.nbytes()) continue;
    StorageImpl& cuda = *twins.cuda.unsafeGetStorageImpl();
    if (twins.cpu.data() != twins.data) cuda.set_data_ptr_noswap(adopt(twins.cpu, cuda.device().index()));
    cuda.set_nbytes(twins.cpu.nbytes());
  }
  for (TensorTwins& twins : tensors_) {
    const TensorImpl& cpu = *twins.cpu.unsafeGetTensorImpl();
    TensorImpl& cuda = *twins.cuda.unsafeGetTensorImpl();
    if (cpu.storage().unsafeGetStorageImpl() != twins.storage) cuda.set_storage_keep_dtype(to_cuda(cpu.storage()));
    if (!same_geometry(cpu, cuda)) cuda.set_sizes_and_strides(cpu.sizes(), cpu.strides(), cpu.storage_offset());
  }
}

// f(tensor) for each tensor of an argument, also in lists.
template <class F>
void each_tensor(const IValue& value, const F& f) {
  if (value.isTensor()) {
    f(value.toTensor());
  } else if (value.isList()) {
    for (const IValue& element : value.toListRef())
      if (element.isTensor()) f(element.toTensor());
  }
}

// The device of a call, that of its CUDA tensors. Raises as kernels of GPUs do.
class CommonDevice {
 public:
  explicit CommonDevice(bool takes_all) : takes_all_(takes_all) {}

  void see(const IValue& value) {
    each_tensor(value, [this](const at::Tensor& tensor) { see_tensor(tensor); });
    if (value.isDevice() && value.toDevice().is_cuda()) named_ = value.toDevice();
    if (value.isGenerator() && value.toGenerator().defined())
      TORCH_CHECK(value.toGenerator().device().is_cuda(), "Expected a 'cuda' device type for generator but found '",
                  value.toGenerator().device().type(), "'");
  }
  c10::DeviceIndex index() const {
    if (!takes_all_ && cuda_ && cpu_) raise(*cuda_, c10::kCPU);
    if (cuda_) return cuda_->index();
    return named_ && named_->has_index() ? named_->index() : current_device();
  }

 private:
  void see_tensor(const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    if (!tensor.is_cuda()) {
      cpu_ |= tensor.dim() > 0;
      return;
    }
    if (cuda_ && !takes_all_ && *cuda_ != tensor.device()) raise(*cuda_, tensor.device());
    if (!cuda_) cuda_ = tensor.device();
  }
  [[noreturn]] static void raise(c10::Device a, c10::Device b) {
    TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, ", a, " and ", b,
                "!");
  }

  const bool takes_all_;
  std::optional<c10::Device> cuda_, named_;
  bool cpu_ = false;  // a tensor of the CPU with dimensions
};

template <class F>
IValue map_tensors(const IValue& value, const F& f) {
  if (value.isTensor()) return f(value.toTensor());
  if (!value.isList()) return value;
  c10::impl::GenericList out(value.toList().elementType());
  for (const IValue& element : value.toListRef())
    out.push_back(element.isTensor() ? IValue(f(element.toTensor())) : element);
  return out;
}

IValue argument_to_cpu(Twins& twins, const IValue& value) {
  if (value.isDevice() && value.toDevice().is_cuda()) return c10::Device(c10::kCPU);
  if (value.isStorage()) return twins.to_cpu(value.toStorage());
  if (value.isGenerator() && value.toGenerator().defined())
    return at::detail::createCPUGenerator(next_seed(value.toGenerator()));
  return map_tensors(value, [&](const at::Tensor& tensor) { return twins.to_cpu(tensor); });
}

// Other libraries' operators have only the kernels which those libraries give them.
void check_is_torchs(const c10::OperatorHandle& op) {
  static const std::unordered_set<std::string> libraries{"aten", "prims", "torchvision"};
  const std::string& name = op.schema().name();
  TORCH_CHECK_NOT_IMPLEMENTED(libraries.contains(name.substr(0, name.find("::"))), "Could not run '",
                              op.operator_name(), "' with arguments from the 'CUDA' backend.");
}

void redispatch(const c10::OperatorHandle& op, torch::jit::Stack* stack, c10::DeviceIndex device) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  std::optional<SeededByDevice> seeded;
  if (op.hasTag(at::Tag::nondeterministic_seeded)) seeded.emplace(device);
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
}

void check_draws_nothing(const c10::OperatorHandle& op, void* stream) {
  if (!op.hasTag(at::Tag::nondeterministic_seeded)) return;
  gpu()->spoil(stream);
  TORCH_CHECK(false, "Attempt to increase offset for a CUDA generator not in capture mode.");
}

// ---- recording: a call on a stream that records touches no memory, and is made by each run of the recording

bool is_view(const c10::OperatorHandle& op) {
  for (const c10::Argument& result : op.schema().returns())
    if (result.alias_info() != nullptr && !result.alias_info()->isWrite()) return true;
  return false;
}

// Arguments of the same geometry, for the geometry of the results alone: memory holds garbage, which is no index.
torch::jit::Stack stand_ins(const torch::jit::Stack& arguments) {
  std::unordered_map<const TensorImpl*, at::Tensor> known;
  const auto stand_in = [&](const at::Tensor& t) {
    if (!t.defined()) return t;
    at::Tensor& out = known[t.unsafeGetTensorImpl()];
    if (!out.defined()) out = at::empty_strided(t.sizes(), t.strides(), t.options()).zero_();
    return out;
  };
  torch::jit::Stack out;
  for (const IValue& value : arguments) out.push_back(map_tensors(value, stand_in));
  return out;
}

void refuse_what_cannot_be_recorded(const c10::OperatorHandle& op, const torch::jit::Stack& arguments, void* stream) {
  static const std::unordered_set<std::string> reading{
      "aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select",
      "aten::is_nonzero",          "aten::equal",   "aten::_unique2"};
  bool refused = reading.contains(op.schema().name());
  for (const IValue& value : arguments)
    each_tensor(
        value, [&](const at::Tensor& tensor) { refused |= tensor.defined() && !tensor.is_cuda() && tensor.dim() > 0; });
  if (!refused) return;
  gpu()->spoil(stream);
  TORCH_CHECK(false, "CUDA error: operation not permitted when stream is capturing");
}

// `stack`: the arguments, which become the results. Results that are no arguments hold garbage until the recording
// runs.
void record(const c10::OperatorHandle& op, torch::jit::Stack* stack, void* stream) {
  const size_t count = op.schema().arguments().size();
  const torch::jit::Stack arguments(stack->end() - static_cast<ptrdiff_t>(count), stack->end());
  torch::jit::Stack shaped = stand_ins(arguments);
  std::unordered_map<const TensorImpl*, at::Tensor> argument_of;
  for (size_t i = 0; i < count; ++i) {
    std::vector<at::Tensor> given;
    each_tensor(arguments[i], [&](const at::Tensor& t) { given.push_back(t); });
    size_t next = 0;
    each_tensor(shaped[i], [&](const at::Tensor& t) { argument_of[t.unsafeGetTensorImpl()] = given[next++]; });
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &shaped);
  std::vector<at::Tensor> made;  // undefined: the call writes to an argument
  stack->resize(stack->size() - count);
  for (const IValue& value : shaped)
    stack->push_back(map_tensors(value, [&](const at::Tensor& t) {
      const auto argument = argument_of.find(t.defined() ? t.unsafeGetTensorImpl() : nullptr);
      made.push_back(argument == argument_of.end() ? t : at::Tensor());
      if (argument != argument_of.end()) return argument->second;
      if (t.defined()) std::memset(t.storage().mutable_data(), 0xa5, t.storage().nbytes());
      return t;
    }));
  gpu()->record(stream, [op, arguments, made] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    torch::jit::Stack again = arguments;
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &again);
    size_t next = 0;
    for (const IValue& value : again)
      each_tensor(value, [&](const at::Tensor& t) {
        const at::Tensor& into = made.at(next++);
        if (into.defined() && into.numel() != 0) into.copy_(t);
      });
  });
}

}  // namespace

void call_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  check_is_torchs(op);
  const size_t arguments = op.schema().arguments().size(), results = op.schema().returns().size();
  CommonDevice common(takes_all_devices(op.schema().name()));
  for (size_t i = stack->size() - arguments; i < stack->size(); ++i) common.see((*stack)[i]);
  void* const stream = current_stream(common.index());
  const bool recording = gpu()->is_recording(stream);
  if (recording)
    refuse_what_cannot_be_recorded(op, {stack->end() - static_cast<ptrdiff_t>(arguments), stack->end()}, stream);
  Twins twins(common.index());
  for (size_t i = stack->size() - arguments; i < stack->size(); ++i) (*stack)[i] = argument_to_cpu(twins, (*stack)[i]);
  if (recording && !is_view(op)) {
    check_draws_nothing(op, stream);
    const at::AutoDispatchBelowADInplaceOrView guard;
    record(op, stack, stream);
  } else {
    redispatch(op, stack, common.index());
  }
  for (size_t i = stack->size() - results; i < stack->size(); ++i)
    (*stack)[i] = map_tensors((*stack)[i], [&](const at::Tensor& tensor) { return twins.to_cuda(tensor); });
  twins.write_back();
}

}  // namespace cresset::gpu_simulator
