// Binding: the part of a call which depends only on sizes.
#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/TensorImpl.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "bridge/aten/dtypes.h"
#include "bridge/aten/empty_strides.h"
#include "bridge/device/cpu/thread_pool.h"
#include "bridge/executor/executor_context.h"
#include "bridge/executor/extern_arguments.h"
#include "bridge/executor/extern_kernel.h"
#include "bridge/executor/frozen_weights.h"
#include "bridge/executor/graph_replay.h"
#include "bridge/executor/index_errors.h"
#include "codegen/nvptx/nvptx_backend.h"

namespace cresset::bridge {

using runtime::ExternArg;
using runtime::Home;
using runtime::TensorId;

namespace {

// Calls f(TensorId) for every tensor in a step.
template <class F>
void for_each_tensor(const runtime::Step& step, F&& f) {
  if (const auto* launch = std::get_if<runtime::Launch>(&step)) {
    for (const TensorId id : launch->buffers) f(id);
  } else if (const auto* call = std::get_if<runtime::ExternCall>(&step)) {
    for_each_argument(*call, f);
    for (const TensorId id : call->results)
      if (id.valid()) f(id);
  } else if (const auto* copy = std::get_if<runtime::Copy>(&step)) {
    f(copy->from);
    f(copy->to);
  }
}

// The device of the program's own memory. A program without memory may be on any device. Programs on a GPU have numbers
// on the CPU beside it.
c10::Device device_of(const runtime::Program& program) {
  std::optional<c10::Device> found;
  for (const Home wanted : {Home::Arena, Home::Fresh, Home::Extern})
    for (const runtime::TensorSlot& slot : program.tensors) {
      if (slot.home != wanted || (found && slot.device.kind == DeviceKind::Cpu)) continue;
      found = to_torch(slot.device);
      if (wanted == Home::Arena || !found->is_cpu()) return *found;
    }
  return found.value_or(c10::Device(c10::kCPU));
}

// Kernels are enqueued on streams of a single GPU.
std::optional<c10::Device> gpu_of(const runtime::Program& program) {
  std::optional<c10::Device> gpu;
  for (const runtime::TensorSlot& slot : program.tensors) {
    if (slot.device.kind != DeviceKind::Cuda) continue;
    const c10::Device device = to_torch(slot.device);
    CRESSET_CHECK(!gpu || *gpu == device, "a program has tensors on several GPUs");
    gpu = device;
  }
  return gpu;
}

std::unique_ptr<ReportWords> words_for_reports(const runtime::Program& program, const BoundContext& context) {
  if (program.index_sites.empty()) return nullptr;
  const std::shared_ptr<runtime::GpuDevice>& gpu = codegen::nvptx::NvptxBackend::get().device();
  CRESSET_CHECK(gpu != nullptr, "kernels report indices without a device");
  std::vector<ReportedSite> sites;
  for (const runtime::IndexSite& site : program.index_sites)
    sites.push_back({site.fault, site.dim, context.size(site.extent), program.locations[site.location]});
  return std::make_unique<ReportWords>(gpu, std::move(sites));
}

}  // namespace

BoundContext::BoundContext(const runtime::Program& program, const std::vector<at::Tensor>& constants,
                           c10::ArrayRef<int64_t> symbols, FrozenWeights* frozen, driver::CudaGraphs cuda_graphs)
    : program_(program),
      constants_(constants),
      frozen_(frozen),
      memory_(DeviceMemory::of(device_of(program))),
      gpu_(gpu_of(program)),
      symbols_(symbols.begin(), symbols.end()) {
  const c10::InferenceMode ordinary_tensors(false);
  launching_.run_on_threads = run_on_threads;
  sizes_.resize(program.sizes.output_count());
  program.sizes.run(symbols_.data(), sizes_.data());
  slots_.resize(program.tensors.size());
  roots_.resize(program.tensors.size());
  tensor_needed_.resize(program.tensors.size());
  for (uint32_t i = 0; i < slots_.size(); ++i) bind_slot(i);
  place_arena();
  for (const runtime::Step& step : program.steps) {
    if (std::holds_alternative<runtime::Launch>(step)) continue;
    for_each_tensor(step, [&](TensorId id) { need_tensor(id); });
  }
  plan_storages();
  bind_steps();
  plan_fresh();
  find_drops();
  reports_ = words_for_reports(program, *this);
  for (uint32_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].home == Home::Reports) set_root(i, static_cast<char*>(reports_->address()));
  const std::shared_ptr<runtime::GpuDevice>& gpu = codegen::nvptx::NvptxBackend::get().device();
  if (cuda_graphs != driver::CudaGraphs::Never && memory_.device().is_cuda() && gpu != nullptr)
    graphs_ = std::make_unique<GraphReplay>(*this, *gpu, memory_.device(), cuda_graphs);
}

BoundContext::~BoundContext() = default;

void BoundContext::wait_for_reports() const {
  if (reports_ == nullptr) return;
  const c10::OptionalDeviceGuard on_gpu(gpu_);
  runtime::GpuDevice& gpu = *codegen::nvptx::NvptxBackend::get().device();
  if (!gpu.is_recording(launching_.stream)) gpu.synchronize(launching_.stream);
}

FrozenWeights* BoundContext::frozen(TensorId id) const {
  const runtime::TensorSlot& root = program_.tensors[slots_[id.index].root];
  const bool held = frozen_ != nullptr && root.home == runtime::Home::Constant && frozen_->contains(root.position);
  return held ? frozen_ : nullptr;
}

std::string BoundContext::frozen_key(TensorId id) const {
  const BoundSlot& slot = slots_[id.index];
  return c10::str(program_.tensors[slot.root].position, " at ", slot.byte_offset, " ", slot.sizes, slot.strides);
}

std::vector<int64_t> BoundContext::sizes(const std::vector<runtime::SizeRef>& refs) const {
  std::vector<int64_t> values;
  values.reserve(refs.size());
  for (const runtime::SizeRef ref : refs) values.push_back(size(ref));
  return values;
}

void BoundContext::bind_slot(uint32_t index) {
  const runtime::TensorSlot& slot = program_.tensors[index];
  BoundSlot& bound = slots_[index];
  bound.home = slot.home;
  bound.memory = slot.device.kind == DeviceKind::Meta ? &memory_ : &DeviceMemory::of(to_torch(slot.device));
  bound.dtype = to_torch(slot.dtype);
  bound.sizes = sizes(slot.sizes);
  bound.strides = sizes(slot.strides);
  bound.numel = 1;
  for (const int64_t n : bound.sizes) bound.numel *= n;
  if (bound.numel == 0) count_empty_as_one(bound.sizes, bound.strides);
  bound.root = index;
  for (const runtime::TensorSlot* s = &slot; s->home == Home::View; s = &program_.tensors[bound.root]) {
    bound.byte_offset += size(s->offset) * byte_size(s->dtype);
    bound.root = s->base.index;
  }
  if (slot.home == Home::Arena) {
    arena_roots_.push_back(index);
  }
  if (slot.continues.valid()) roots_[slot.continues.index].heir = index;
  if (slot.home != Home::View && slot.home != Home::Constant && slot.home != Home::Reports) owners_.push_back(index);
}

void BoundContext::place_arena() {
  if (arena_roots_.empty()) return;
  use_plan(runtime::plan_arena(program_, sizes_));
  CRESSET_LOG(Memory, runtime::explain_peak(program_, sizes_, plan_));
}

void BoundContext::use_plan(runtime::ArenaPlan plan) {
  plan_ = std::move(plan);
  scratch_threads_ = 0;
  hosted_.clear();
  for (const uint32_t root : arena_roots_)
    if (const TensorId host = plan_.places[root].host; host.valid()) hosted_.emplace_back(host.index, root);
  std::sort(hosted_.begin(), hosted_.end());
}

// A step asks only once: the library and its needs may change from call to call.
bool BoundContext::want_gap(const PlaceResults& placed) {
  constexpr int64_t kLeastGain = 1 << 16;
  if (placed.missed() == 0) return false;
  if (std::find(gaps_asked_.begin(), gaps_asked_.end(), position_) != gaps_asked_.end()) return false;
  gaps_asked_.push_back(position_);
  const auto asked = static_cast<int64_t>(placed.asked()), missed = static_cast<int64_t>(placed.missed());
  int64_t free = 0;
  for (const runtime::ArenaPlan::Gap& gap : plan_.gaps(position_)) free += gap.place.host.valid() ? 0 : gap.bytes;
  if (free - (asked - missed) < kLeastGain) return false;
  gaps_wanted_.push_back({{position_, asked}, missed});
  return true;
}

// Runs between calls: repeats the arena layout with the wanted gaps, if the arena then grows by less than the bytes
// allocated beside it.
void BoundContext::make_gaps() {
  constexpr size_t kMostPlans = 8;
  std::vector<WantedGap> wanted;
  std::swap(wanted, gaps_wanted_);
  std::sort(wanted.begin(), wanted.end(), [](const auto& a, const auto& b) { return a.missed > b.missed; });
  const auto made = [&](size_t first, size_t last) {
    const size_t before = gaps_made_.size();
    for (size_t i = first; i < last; ++i) gaps_made_.push_back(wanted[i].scratch);
    runtime::ArenaPlan plan = runtime::plan_arena(program_, sizes_, gaps_made_);
    const bool pays = plan.most() < plan_.most() + wanted[first].missed;
    if (pays)
      use_plan(std::move(plan));
    else
      gaps_made_.resize(before);
    return pays;
  };
  // Similar layers want similar gaps: the arena grows once for all of them.
  if (wanted.size() > 1 && made(0, wanted.size())) wanted.clear();
  for (size_t i = 0; i < std::min(wanted.size(), kMostPlans); ++i) made(i, i + 1);
  plan_fresh();
}

int64_t BoundSlot::extent() const {
  if (numel == 0) return 0;
  int64_t last = 0;
  for (size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
  return (last + 1) * static_cast<int64_t>(c10::elementSize(dtype));
}

void BoundContext::need_tensor(TensorId id) { tensor_needed_[id.index] = true; }

// Wrappers of slots in the same root share a storage which covers them all, so a single store moves them together.
void BoundContext::plan_storages() {
  std::vector<std::pair<int64_t, int64_t>> range(slots_.size(), {0, 0});  // by root: first and last byte
  const auto wrapped = [&](uint32_t i) {
    const Home home = slots_[i].home;
    return tensor_needed_[i] && (home == Home::Arena || home == Home::Extern || home == Home::View);
  };
  for (uint32_t i = 0; i < slots_.size(); ++i) {
    if (!wrapped(i)) continue;
    auto& [low, high] = range[slots_[i].root];
    low = std::min(low, slots_[i].byte_offset);
    // A part of an empty tensor may begin behind its root, which has no memory.
    if (slots_[i].numel != 0) high = std::max(high, slots_[i].byte_offset + slots_[i].extent());
  }
  for (uint32_t i = 0; i < slots_.size(); ++i) {
    if (!wrapped(i)) continue;
    BoundRoot& root = roots_[slots_[i].root];
    if (root.storage == nullptr) {
      const auto& [low, high] = range[slots_[i].root];
      root.storage_shift = low;
      root.storage = slots_[i].memory->borrow(static_cast<size_t>(high - low));
    }
    make_wrapper(i);
  }
}

void BoundContext::make_wrapper(uint32_t index) {
  BoundSlot& slot = slots_[index];
  const BoundRoot& root = roots_[slot.root];
  const int64_t bytes = slot.byte_offset - root.storage_shift;
  const auto element = static_cast<int64_t>(c10::elementSize(slot.dtype));
  CRESSET_CHECK(bytes % element == 0, "a view starts inside an element of its dtype");
  slot.wrapper = slot.memory->over(root.storage, slot.sizes, slot.strides, bytes / element, slot.dtype);
  slot.tensor = &slot.wrapper;
}

void BoundContext::bind_steps() {
  size_t buffers = 0, symbols = 0;
  for (const runtime::Step& step : program_.steps) {
    const auto* launch = std::get_if<runtime::Launch>(&step);
    if (launch == nullptr) continue;
    buffers += launch->buffers.size();
    symbols += launch->symbols.size();
  }
  params_.resize(runtime::ParamBlock::size(buffers, symbols));  // never resized again: kernels hold pointers into it
  std::byte* params = params_.data();
  steps_.reserve(program_.steps.size());
  uint32_t position = 0;
  size_t joined = 0;  // calls before it have another step behind them
  const auto join_calls = [&] {
    if (gpu_) join_products(*this, std::span(externs_).subspan(joined));
    joined = externs_.size();
  };
  for (const runtime::Step& step : program_.steps) {
    if (const auto* launch = std::get_if<runtime::Launch>(&step)) {
      join_calls();
      steps_.push_back({StepKind::Launch, static_cast<uint32_t>(launches_.size()), 0, 0, 0, 0, position});
      params = bind_launch(*launch, params);
    } else if (const auto* call = std::get_if<runtime::ExternCall>(&step)) {
      steps_.push_back({StepKind::Extern, static_cast<uint32_t>(externs_.size())});
      externs_.push_back(bind_extern_call(*call, *this));
      has_host_steps_ = has_host_steps_ || externs_.back()->runs_on_host();
    } else if (const auto* copy = std::get_if<runtime::Copy>(&step)) {
      join_calls();
      steps_.push_back({StepKind::Copy, static_cast<uint32_t>(copies_.size())});
      bind_copy(*copy);
    } else {
      steps_.push_back({StepKind::Release, 0});  // find_drops() decides, because it also sees adopted memory
    }
    steps_.back().position = position;
    position += !std::holds_alternative<runtime::Release>(step);
  }
  join_calls();
}

std::byte* BoundContext::bind_launch(const runtime::Launch& launch, std::byte* params) {
  const runtime::ParamBlock block{params, static_cast<uint32_t>(launch.buffers.size()),
                                  static_cast<uint32_t>(launch.symbols.size())};
  for (size_t i = 0; i < launch.buffers.size(); ++i) {
    const BoundSlot& slot = slots_[launch.buffers[i].index];
    roots_[slot.root].listeners.emplace_back(block.buffer(i), slot.byte_offset);
  }
  for (size_t i = 0; i < launch.symbols.size(); ++i) *block.symbol(i) = size(launch.symbols[i]);
  const DeviceMemory& memory =
      launch.device == DeviceKind::Cuda ? DeviceMemory::of(*gpu_) : DeviceMemory::of(c10::kCPU);
  launches_.push_back({program_.kernels[launch.kernel]->bind(block), steps_.back().position, &memory, {}, &launch});
  return params + runtime::ParamBlock::size(launch.buffers.size(), launch.symbols.size());
}

void BoundContext::bind_copy(const runtime::Copy& copy) {
  const Home root = slots_[slots_[copy.to.index].root].home;
  copies_.push_back({copy.from, copy.to, !copy.unseen && (root == Home::Input || root == Home::Constant)});
}

// A Fresh slot is allocated before the first step which mentions it or uses its memory. The result of an extern call is
// excluded, since the call may return memory of its own.
void BoundContext::plan_fresh() {
  fresh_.clear();
  std::vector<bool> seen(slots_.size());
  const auto allocate = [&](uint32_t root) {
    if (!seen[root] && slots_[root].home == Home::Fresh) fresh_.push_back(root);
    seen[root] = true;
  };
  for (size_t s = 0; s < steps_.size(); ++s) {
    const runtime::Step& step = program_.steps[s];
    steps_[s].fresh_begin = static_cast<uint32_t>(fresh_.size());
    // Scratch memory of a step may also lie in an output's memory.
    if (!std::holds_alternative<runtime::Release>(step) && !arena_roots_.empty()) {
      for (const runtime::ArenaPlan::Gap& gap : plan_.gaps(steps_[s].position))
        if (gap.place.host.valid()) allocate(gap.place.host.index);
    }
    const auto allocate_host_of = [&](TensorId id) {
      const uint32_t root = slots_[id.index].root;
      const TensorId host = slots_[root].home == Home::Arena ? plan_.places[root].host : TensorId{};
      if (host.valid()) allocate(host.index);
    };
    for_each_tensor(step, allocate_host_of);
    if (const auto* call = std::get_if<runtime::ExternCall>(&step)) {
      for (const TensorId id : externs_[steps_[s].index]->also_touches()) allocate_host_of(id);
      for (const TensorId id : call->results)
        if (id.valid()) seen[id.index] = true;
    }
    for_each_tensor(step, [&](TensorId id) { allocate(slots_[id.index].root); });
    steps_[s].fresh_end = static_cast<uint32_t>(fresh_.size());
  }
  fresh_unused_ = static_cast<uint32_t>(fresh_.size());
  for (uint32_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].home == Home::Fresh && !seen[i]) fresh_.push_back(i);
}

// Finds the step after which an input, or memory returned by an extern call, is no longer needed.
void BoundContext::find_drops() {
  constexpr uint32_t kNever = UINT32_MAX;
  std::vector<uint32_t> last_use(slots_.size(), kNever);
  std::vector<bool> returned(slots_.size());
  for (const TensorId id : program_.inputs)
    if (id.valid()) returned[id.index] = true;
  for (uint32_t s = 0; s < program_.steps.size(); ++s) {
    for_each_tensor(program_.steps[s], [&](TensorId id) { last_use[slots_[id.index].root] = s; });
    if (const auto* call = std::get_if<runtime::ExternCall>(&program_.steps[s]))
      for (const TensorId id : call->results)
        for (uint32_t r = id.valid() ? slots_[id.index].root : kNever; r != kNever; r = roots_[r].heir)
          returned[r] = true;
  }
  for (const TensorId id : program_.outputs) last_use[slots_[id.index].root] = kNever;
  std::vector<std::vector<uint32_t>> by_step(steps_.size());
  for (uint32_t i = 0; i < slots_.size(); ++i)
    if (returned[i] && last_use[i] != kNever) by_step[last_use[i]].push_back(i);
  for (size_t s = 0; s < steps_.size(); ++s) {
    steps_[s].drop_begin = static_cast<uint32_t>(drops_.size());
    drops_.insert(drops_.end(), by_step[s].begin(), by_step[s].end());
    steps_[s].drop_end = static_cast<uint32_t>(drops_.size());
  }
}

}  // namespace cresset::bridge
