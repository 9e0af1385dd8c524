// Running a bound context: patch addresses, walk the tape.
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/TensorImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "bridge/device/cpu/layout_copy.h"
#include "bridge/device/cpu/result_allocator.h"
#include "bridge/device/cpu/thread_pool.h"
#include "bridge/device/cuda/cuda_memory.h"
#include "bridge/executor/assumption_failed.h"
#include "bridge/executor/executor.h"
#include "bridge/executor/executor_context.h"
#include "bridge/executor/extern_kernel.h"
#include "bridge/executor/graph_replay.h"
#include "codegen/cpu/host_kernel.h"
#include "codegen/cpu/jit.h"
#include "codegen/nvptx/nvptx_backend.h"

namespace cresset::bridge {
namespace {

using runtime::Home;
using runtime::TensorId;

char* element_zero(const at::Tensor& tensor) {
  return static_cast<char*>(const_cast<void*>(tensor.unsafeGetTensorImpl()->data()));
}

// Whether a tensor's strides address the same elements as the slot's.
bool strides_agree(const at::Tensor& tensor, const BoundSlot& slot) {
  if (slot.numel == 0) return true;
  for (size_t d = 0; d < slot.sizes.size(); ++d)
    if (slot.sizes[d] > 1 && tensor.stride(static_cast<int64_t>(d)) != slot.strides[d]) return false;
  return true;
}

// Wrappers do not own their memory; an operator which returns its argument must not smuggle it out.
bool owns_memory(const at::Tensor& tensor) {
  return tensor.numel() == 0 || tensor.storage().data_ptr().get_context() != nullptr;
}

void check_result(const at::Tensor& result, const BoundSlot& slot, std::string_view op) {
  CRESSET_CHECK(result.defined(), fmt::format("{} returned no tensor where one was expected", op));
  if (result.sizes() != c10::IntArrayRef(slot.sizes))
    throw PredictionError(std::string(op), fmt::format("{} returned sizes [{}], expected [{}]", op,
                                                       fmt::join(result.sizes(), ", "), fmt::join(slot.sizes, ", ")));
  CRESSET_CHECK(result.scalar_type() == slot.dtype,
                fmt::format("{} returned dtype {}, expected {}", op, c10::toString(result.scalar_type()),
                            c10::toString(slot.dtype)));
}

// A tensor without memory, for a profiler.
at::Tensor shape_only(const BoundSlot& slot) {
  auto impl = c10::make_intrusive<c10::TensorImpl>(
      c10::Storage(c10::Storage::use_byte_size_t(), 0, at::DataPtr(), nullptr, false),
      c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(slot.dtype));
  impl->set_sizes_and_strides(slot.sizes, slot.strides);
  return at::Tensor(std::move(impl));
}

// torch's profiler sees the launch by the kernel's title, with the sizes and dtypes of its buffers; perf sees the code.
void profile_launch(const runtime::Program& program, const runtime::Launch& launch, const std::vector<BoundSlot>& slots,
                    std::optional<at::RecordFunction>& record) {
  const std::string& text = program.kernel_text.at(launch.kernel);
  const std::string title = "cresset: " + text.substr(2, text.find('\n') - 2);
  if (launch.device == DeviceKind::Cpu) {
    const auto& kernel = codegen::cpu::HostKernel::from(*program.kernels[launch.kernel]);
    codegen::cpu::name_code(reinterpret_cast<const void*>(kernel.fn()), title);
  }
  record.emplace(at::RecordScope::FUNCTION);
  if (!record->isActive()) return;
  std::vector<c10::IValue> buffers;
  for (const TensorId id : launch.buffers) buffers.emplace_back(shape_only(slots[id.index]));
  record->before(title, c10::ArrayRef<const c10::IValue>(buffers.data(), buffers.size()));
}

// What steps on the host give to kernels by value would be the same at each replay of somebody else's recording.
void refuse_recording_by_others(runtime::Stream stream) {
  const std::shared_ptr<runtime::GpuDevice>& gpu = codegen::nvptx::NvptxBackend::get().device();
  if (gpu != nullptr && gpu->is_recording(stream))
    throw AssumptionFailed({__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
                           "a call that draws random numbers, on a stream that is recorded");
}

}  // namespace

void BoundContext::set_root(uint32_t index, char* base) {
  BoundRoot& root = roots_[index];
  if (root.base == base) return;
  root.base = base;
  for (const auto& [where, offset] : root.listeners) *where = base + offset;
  if (root.storage != nullptr) slots_[index].memory->point(*root.storage, base + root.storage_shift);
}

void BoundContext::bind_call(c10::ArrayRef<at::Tensor> inputs) {
  CRESSET_CHECK(inputs.size() == program_.inputs.size(), "a program was given another number of inputs than it has");
  const auto bind = [this](const std::vector<TensorId>& ids, c10::ArrayRef<at::Tensor> tensors) {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (!ids[i].valid()) continue;
      slots_[ids[i].index].tensor = &tensors[i];
      set_root(ids[i].index, element_zero(tensors[i]));
    }
  };
  bind(program_.inputs, inputs);
  bind(program_.constants, constants_);
}

void BoundContext::bind_arena(Part part, const ArenaBlock& arena) {
  const auto i = static_cast<size_t>(part);
  last_arenas_[i] = arena.id;
  arena_bases_[i] = arena.data;
  for (const uint32_t root : arena_roots_) {
    const runtime::ArenaPlan::Place& place = plan_.places[root];
    if (!place.host.valid() && place.part == part) set_root(root, arena_place(root));
  }
}

void BoundContext::allocate_fresh(uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; ++i) allocate_host(fresh_[i]);
}

void BoundContext::allocate_host(uint32_t host) {
  planned(TensorId{host});
  const auto of_host = std::pair(host, uint32_t{0});
  for (auto it = std::lower_bound(hosted_.begin(), hosted_.end(), of_host); it != hosted_.end() && it->first == host;
       ++it)
    set_root(it->second, arena_place(it->second));
}

const at::Tensor& BoundContext::planned(TensorId id) {
  BoundSlot& slot = slots_[id.index];
  BoundRoot& root = roots_[id.index];
  if (slot.home == Home::Arena) {
    set_root(id.index, arena_place(id.index));
  } else if (slot.home == Home::Fresh && !root.owner.defined()) {
    root.owner = slot.memory->allocate(slot.sizes, slot.strides, slot.dtype);
    slot.tensor = &root.owner;
    set_root(id.index, element_zero(root.owner));
  }
  return *slot.tensor;
}

namespace {

// Dimensions of stride 0 repeat an element: only this element is copied.
void copy_elements(at::Tensor into, at::Tensor from) {
  if (convert_layout(from, into)) return;
  for (int64_t d = 0; d < into.dim(); ++d) {
    if (into.stride(d) != 0 || into.size(d) < 2) continue;
    into = into.narrow(d, 0, 1);
    from = from.narrow(d, 0, 1);
  }
  into.copy_(from);
}

// A copy in memory of its own.
at::Tensor copied(const at::Tensor& borrowed) {
  const PlaceResults no_places;
  return borrowed.clone();
}

}  // namespace

PlaceResults::Places BoundContext::places(c10::ArrayRef<TensorId> results) const {
  PlaceResults::Places places;
  for (const TensorId id : results) {
    if (!id.valid() || slots_[id.index].home == Home::View || slots_[id.index].numel == 0) continue;
    if (program_.tensors[id.index].continues.valid()) continue;  // the memory holds an argument
    places.push_back({planned_address(id.index), static_cast<size_t>(size(program_.tensors[id.index].bytes))});
  }
  return places;
}

PlaceResults::Places BoundContext::gaps() const {
  PlaceResults::Places places;
  for (const runtime::ArenaPlan::Gap& gap : plan_.gaps(position_))
    places.push_back({address(gap.place), static_cast<size_t>(gap.bytes)});
  return places;
}

bool BoundContext::dies_in_this_step(TensorId id) const {
  const uint32_t root = slots_[id.index].root;
  return slots_[root].home == Home::Arena && !roots_[root].owner.defined() && roots_[root].heir == TensorId::kNone &&
         program_.tensors[root].last_step == position_;
}

void BoundContext::copy_into(TensorId id, const at::Tensor& from) {
  copy_elements(planned(id), from);
  ++stats_.restride_copies;
}

uint32_t BoundContext::last_heir(uint32_t root) const {
  while (roots_[root].heir != TensorId::kNone) root = roots_[root].heir;
  return root;
}

void BoundContext::adopt(TensorId id, at::Tensor result, std::string_view op) {
  BoundSlot& slot = slots_[id.index];
  check_result(result, slot, op);
  result = result.resolve_conj().resolve_neg();
  const bool agrees = strides_agree(result, slot);
  // Borrowed memory: planned, or bytes which are free for the moment.
  if (PlaceResults::holds(
          result.storage().data())) {  // borrowed: planned memory, or bytes that are free for the moment
    if (agrees && element_zero(result) == planned_address(id.index)) return;
    result = copied(result);
  }
  const uint32_t heir = last_heir(id.index);
  const bool becomes_output = heir != id.index && slots_[heir].home == Home::Fresh;
  if (slot.home == Home::View || becomes_output || (!agrees && slot.home != Home::Extern)) return copy_into(id, result);
  // A memory which another slot continues is written to, so no other owner may hold it.
  const bool shared = roots_[id.index].heir != TensorId::kNone && result.storage().use_count() != 1;
  if (!agrees || shared || !owns_memory(result)) {
    const PlaceResults no_places;  // it lives longer than the call
    at::Tensor copy = slot.memory->allocate(slot.sizes, slot.strides, slot.dtype);
    copy_elements(copy, result);
    result = std::move(copy);
    ++stats_.restride_copies;
  }
  if (slot.home == Home::Arena) ++stats_.adopted;
  char* const base = element_zero(result);
  uint32_t last = id.index;
  set_root(last, base);
  // Slots which continue this memory in place move with it and keep it alive.
  while (roots_[last].heir != TensorId::kNone) set_root(last = roots_[last].heir, base);
  roots_[last].owner = std::move(result);
  if (slot.home == Home::Fresh) slot.tensor = &roots_[last].owner;
}

// Scratch of kernels lies in memory which is dead while they run, if there is room; else behind the arena.
void BoundContext::place_scratch() {
  if (scratch_threads_ == launching_.host_threads) return;
  scratch_threads_ = launching_.host_threads;
  scratch_bytes_ = 0;
  arena_end_ = plan_.end;
  for (BoundLaunch& launch : launches_) {
    launch.scratch.reset();
    if (launch.memory != &memory_) continue;  // run_launch() allocates it
    const int64_t bytes = launch.kernel->scratch_bytes(launching_);
    for (const runtime::ArenaPlan::Gap& gap : plan_.gaps(launch.position))
      if (bytes != 0 && gap.bytes >= bytes) launch.scratch = gap.place;
    if (launch.scratch || bytes == 0) continue;
    scratch_bytes_ = std::max(scratch_bytes_, bytes);
    arena_end_ = std::max(arena_end_, launch.position + 1);
  }
}

void* BoundContext::scratch_of(const BoundLaunch& launch) const {
  return launch.scratch ? address(*launch.scratch) : arena_bases_[0] + plan_.arena();
}

void BoundContext::run_launch(const BoundLaunch& launch) {
  std::optional<at::RecordFunction> record;
  if (!program_.kernel_text.empty()) profile_launch(program_, *launch.step, slots_, record);
  if (launch.memory != &memory_) {
    const int64_t bytes = launch.kernel->scratch_bytes(launching_);
    at::Tensor scratch;
    if (bytes != 0) scratch = launch.memory->allocate({bytes}, {1}, at::kByte);
    return launch.kernel->launch(launching_, bytes != 0 ? scratch.mutable_data_ptr() : nullptr);
  }
  launch.kernel->launch(launching_, scratch_of(launch));
}

void BoundContext::run_copy(const BoundCopy& copy) {
  const at::Tensor& to = tensor(copy.to);
  to.copy_(tensor(copy.from));
  // Autograd's bookkeeping is above this code; an owner of saved old contents must still notice the write.
  if (!copy.bump_version) return;
  c10::TensorImpl* written = slots_[slots_[copy.to.index].root].tensor->unsafeGetTensorImpl();
  if (!written->is_inference()) written->bump_version();
}

void BoundContext::own_inputs(std::vector<at::Tensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorId id = program_.inputs[i];
    if (!id.valid()) continue;
    roots_[id.index].owner = std::move(inputs[i]);
    slots_[id.index].tensor = &roots_[id.index].owner;
  }
  inputs.clear();
}

std::vector<at::Tensor> BoundContext::run(c10::ArrayRef<at::Tensor> inputs) { return run(inputs, nullptr); }
std::vector<at::Tensor> BoundContext::run_releasing(std::vector<at::Tensor> inputs) { return run(inputs, &inputs); }

std::vector<at::Tensor> BoundContext::run(c10::ArrayRef<at::Tensor> inputs, std::vector<at::Tensor>* released) {
  // Operators were captured below autograd and autocast, and run there.
  const c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                                                 c10::autocast_dispatch_keyset);
  const ReuseResultMemory reuse;
  const PlaceResults no_places;  // hides places of an outer call, if this program runs inside one
  const c10::OptionalDeviceGuard on_gpu(gpu_);
  launching_.host_threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  if (gpu_) launching_.stream = current_stream(*gpu_);
  if (has_host_steps_ && gpu_) refuse_recording_by_others(launching_.stream);
  place_scratch();
  std::optional<HeldArena> arenas[3];
  struct AtEnd {
    BoundContext& context;
    ~AtEnd() { context.end_call(); }
  } at_end{*this};
  const int64_t most = plan_.most() + scratch_bytes_;
  const bool by_graphs = graphs_ != nullptr && graphs_->start(static_cast<size_t>(most), released != nullptr);
  if (by_graphs) {
    bind_one_arena(graphs_->arena());
  } else {
    hold_arena(arenas[0], Part::Whole, plan_.arena() + scratch_bytes_);
    if (plan_.turn != 0) hold_arena(arenas[1], Part::Before, plan_.bytes[1]);
  }
  bind_call(inputs);
  if (released != nullptr) own_inputs(*released);
  by_graphs ? graphs_->run() : run_tape(arenas);
  allocate_fresh(fresh_unused_, static_cast<uint32_t>(fresh_.size()));
  return take_outputs();
}

void BoundContext::hold_arena(std::optional<HeldArena>& held, Part part, int64_t bytes) {
  held.emplace(memory_, static_cast<size_t>(bytes), last_arenas_[static_cast<size_t>(part)]);
  bind_arena(part, held->block());
}

// All parts of the arena in one block: those which are never alive together in the same bytes.
void BoundContext::bind_one_arena(char* base) {
  char* const turns = base + plan_.arena() + scratch_bytes_;
  bind_arena(Part::Whole, {base, 0, last_arenas_[0]});
  if (plan_.turn == 0) return;
  bind_arena(Part::Before, {turns, 0, last_arenas_[1]});
  bind_arena(Part::After, {turns, 0, last_arenas_[2]});
}

void BoundContext::run_tape(std::optional<HeldArena> (&arenas)[3]) {
  bool turned = plan_.turn == 0;
  for (const BoundStep& step : steps_) {
    if (!turned && step.position >= plan_.turn) {
      turned = true;
      arenas[1].reset();
      hold_arena(arenas[2], Part::After, plan_.bytes[2]);
    }
    if (step.position >= arena_end_)
      for (std::optional<HeldArena>& arena : arenas) arena.reset();
    run_step(step);
  }
}

void BoundContext::run_step(const BoundStep& step) {
  allocate_fresh(step.fresh_begin, step.fresh_end);
  position_ = step.position;
  switch (step.kind) {
    case StepKind::Launch:
      run_launch(launches_[step.index]);
      break;
    case StepKind::Extern:
      externs_[step.index]->run(*this);
      break;
    case StepKind::Copy:
      run_copy(copies_[step.index]);
      break;
    case StepKind::Release:
      break;
  }
  for (uint32_t i = step.drop_begin; i < step.drop_end; ++i) roots_[drops_[i]].owner.reset();
}

std::vector<at::Tensor> BoundContext::take_outputs() {
  std::vector<at::Tensor> outputs;
  outputs.reserve(program_.outputs.size());
  for (const TensorId id : program_.outputs) outputs.push_back(take_output(id));
  return outputs;
}

at::Tensor BoundContext::take_output(TensorId id) {
  const BoundSlot& slot = slots_[id.index];
  const BoundSlot& root = slots_[slot.root];
  CRESSET_CHECK(root.home != Home::Arena, fmt::format("output {} lies in the arena", program_.tensors[id.index].name));
  const at::Tensor& base =
      root.home == Home::Input || root.home == Home::Constant ? *root.tensor : roots_[slot.root].owner;
  if (slot.home != Home::View) return base;
  auto impl = c10::make_intrusive<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(base.storage()), base.key_set(),
                                                   c10::scalarTypeToTypeMeta(slot.dtype));
  const auto base_bytes = base.storage_offset() * static_cast<int64_t>(base.element_size());
  const auto element = static_cast<int64_t>(c10::elementSize(slot.dtype));
  impl->set_sizes_and_strides(slot.sizes, slot.strides, (base_bytes + slot.byte_offset) / element);
  if (!base.is_inference()) impl->set_version_counter(base.unsafeGetTensorImpl()->version_counter());
  return at::Tensor(std::move(impl));
}

void BoundContext::end_call() {
  for (const uint32_t root : owners_) roots_[root].owner.reset();
  if (!gaps_wanted_.empty()) make_gaps();
  if (graphs_ != nullptr) graphs_->finish();
}

}  // namespace cresset::bridge
