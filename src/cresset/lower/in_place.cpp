#include "lower/in_place.h"

#include <algorithm>

#include "lower/used_where.h"
#include "ops/op_def.h"

namespace cresset::lower {
namespace {

using loop::BufferId;
using loop::Kernel;
using runtime::Home;
using runtime::Program;
using runtime::TensorId;

// The address of the single store that defines all elements of the buffer.
std::optional<sym::ExprId> only_store(const Kernel& kernel, BufferId buffer) {
  std::optional<sym::ExprId> address;
  for (const loop::Store& store : kernel.stores) {
    if (store.buffer != buffer) continue;
    if (address || store.condition.valid() || store.combine) return std::nullopt;
    address = store.address;
  }
  return address;
}

bool is_load_of(const loop::Scalar& scalar, BufferId buffer) {
  return scalar.op == loop::Op::Load && scalar.buffer == buffer;
}

bool could_load_only_at(const Kernel& kernel, BufferId buffer, sym::ExprId address) {
  for (uint32_t i = 0; i < kernel.scalars.size(); ++i)
    if (is_load_of(kernel.scalars[i], buffer) && !could_load_at(kernel, {i}, address)) return false;
  return true;
}

void load_only_at(Kernel& kernel, BufferId buffer, sym::ExprId address) {
  for (loop::Scalar& scalar : kernel.scalars)
    if (is_load_of(scalar, buffer)) scalar.expr = address;
}

// Buffer `from` becomes `to`; `from` is removed.
void unify(Kernel& kernel, std::vector<TensorId>& tensors, BufferId from, BufferId to) {
  const auto moved = [&](BufferId b) {
    if (b == from) b = to;
    return BufferId{b.index > from.index ? b.index - 1 : b.index};
  };
  kernel.buffers[to.index].read |= kernel.buffers[from.index].read;
  kernel.buffers[to.index].written |= kernel.buffers[from.index].written;
  for (loop::Scalar& scalar : kernel.scalars)
    if (scalar.op == loop::Op::Load) scalar.buffer = moved(scalar.buffer);
  for (loop::Store& store : kernel.stores) store.buffer = moved(store.buffer);
  kernel.buffers.erase(kernel.buffers.begin() + from.index);
  tensors.erase(tensors.begin() + from.index);
}

// Whether two tensors have the same dtype, sizes and strides.
bool lie_alike(const SizeTable& sizes, const Program& program, TensorId a, TensorId b) {
  const runtime::TensorSlot &x = program.tensors[a.index], &y = program.tensors[b.index];
  const auto same = [&](const auto& p, const auto& q) {
    return std::equal(p.begin(), p.end(), q.begin(), q.end(),
                      [&](runtime::SizeRef i, runtime::SizeRef j) { return sizes.expr(i) == sizes.expr(j); });
  };
  return x.dtype == y.dtype && x.device == y.device && same(x.sizes, y.sizes) && same(x.strides, y.strides);
}

class Writer {
 public:
  Writer(SizeTable& sizes, Lowered& lowered)
      : sizes_(sizes),
        lowered_(lowered),
        program_(lowered.program),
        steps_(lowered.program.steps),
        uses_(program_.tensors.size()) {}

  void run() {
    for (uint32_t s = 0; s < steps_.size(); ++s) for_each_tensor(steps_[s], [&](TensorId id) { note_use(s, id); });
    for (uint32_t s = 0; s < steps_.size(); ++s)
      if (auto* copy = std::get_if<runtime::Copy>(&steps_[s])) write_directly(s, *copy);
    // Nothing of the device's work waits for records of writes.
    std::stable_partition(steps_.begin(), steps_.end(), [](const runtime::Step& step) {
      const auto* copy = std::get_if<runtime::Copy>(&step);
      return copy == nullptr || copy->from != copy->to;
    });
  }

 private:
  struct Use {
    uint32_t step;
    bool alone = true;  // the step uses the tensor once, and not through a view
  };

  void note_use(uint32_t step, TensorId id) {
    const TensorId memory = owner(program_, id);
    std::vector<Use>& uses = uses_[memory.index];
    const bool again = !uses.empty() && uses.back().step == step;
    if (!again) uses.push_back({step});
    uses.back().alone &= !again && id == memory;
  }
  void write_directly(uint32_t at, runtime::Copy& copy) {
    const TensorId from = copy.from, to = copy.to;
    const Home home = program_.tensors[to.index].home;
    if (!is_intermediate(from) || (home != Home::Input && home != Home::Constant)) return;
    if (!lie_alike(sizes_, program_, from, to)) return;
    const uint32_t maker = uses_[from.index].front().step;
    for (const Use& use : uses_[to.index])
      if (use.step != at && (use.step > maker || (use.step == maker && !use.alone))) return;
    if (auto* const launch = std::get_if<runtime::Launch>(&steps_[maker])) {
      if (!store_in_place(*launch, from, to)) return;
    } else if (!continues_first(maker, to)) {
      return;
    }
    for (const Use& use : uses_[from.index]) replace(steps_[use.step], from, to);
    for (runtime::TensorSlot& slot : program_.tensors)
      if (slot.home == Home::View && slot.base == from) slot.base = to;
  }

  // Intermediates beside the arena's device are allocated one by one.
  bool is_intermediate(TensorId id) const {
    const Home home = program_.tensors[id.index].home;
    const auto lies_there = [&](TensorId output) { return owner(program_, output) == id; };
    return home == Home::Arena ||
           (home == Home::Fresh && std::none_of(program_.outputs.begin(), program_.outputs.end(), lies_there));
  }

  // Whether the step is a call whose result starts as this argument, on a GPU: calls on the CPU prepare their results.
  bool continues_first(uint32_t maker, TensorId argument) const {
    const auto* const call = std::get_if<runtime::ExternCall>(&steps_[maker]);
    const ops::OpDef* def = call == nullptr ? nullptr : ops::find(call->op);
    if (def == nullptr || !def->starts_as_first || call->args.empty() || call->results.size() != 1) return false;
    const auto* first = std::get_if<TensorId>(&call->args[0]);
    return first != nullptr && *first == argument && program_.tensors[argument.index].device.kind == DeviceKind::Cuda;
  }

  static void replace(runtime::Step& step, TensorId from, TensorId to) {
    if (auto* const launch = std::get_if<runtime::Launch>(&step))
      return std::replace(launch->buffers.begin(), launch->buffers.end(), from, to);
    if (auto* const copy = std::get_if<runtime::Copy>(&step); copy != nullptr && copy->from == from) copy->from = to;
    auto* const call = std::get_if<runtime::ExternCall>(&step);
    if (call == nullptr) return;
    std::replace(call->results.begin(), call->results.end(), from, to);
    for (runtime::ExternArg& arg : call->args) {
      if (auto* const id = std::get_if<TensorId>(&arg); id != nullptr && *id == from) *id = to;
      if (auto* const list = std::get_if<std::vector<std::optional<TensorId>>>(&arg))
        std::replace(list->begin(), list->end(), std::optional(from), std::optional(to));
    }
  }

  bool store_in_place(runtime::Launch& launch, TensorId from, TensorId to) {
    Kernel& kernel = *lowered_.kernels[launch.kernel];
    const auto place = [&](TensorId id) {
      return static_cast<uint32_t>(std::find(launch.buffers.begin(), launch.buffers.end(), id) -
                                   launch.buffers.begin());
    };
    const uint32_t out = place(from), in = place(to);
    const auto address = only_store(kernel, {out});
    if (!address || kernel.buffers[out].read) return false;
    if (in == launch.buffers.size()) return launch.buffers[out] = to, true;
    if (kernel.buffers[in].written || !could_load_only_at(kernel, {in}, *address)) return false;
    load_only_at(kernel, {in}, *address);
    unify(kernel, launch.buffers, {out}, {in});
    return true;
  }

  SizeTable& sizes_;
  Lowered& lowered_;
  Program& program_;
  std::vector<runtime::Step>& steps_;
  std::vector<std::vector<Use>> uses_;  // by the tensor which owns the memory, in the order of steps
};

class Reuser {
 public:
  Reuser(SizeTable& sizes, const std::vector<Lifetime>& lives, const std::vector<Alias>& aliases, Lowered& lowered)
      : sizes_(sizes), lives_(lives), aliases_(aliases), lowered_(lowered), shares_(lowered.program.tensors.size()) {}

  std::vector<TensorId> run() {
    for (uint32_t s = 0; s < lowered_.program.steps.size(); ++s) {
      if (const auto* call = std::get_if<runtime::ExternCall>(&lowered_.program.steps[s])) reuse_first(s, *call);
      auto* launch = std::get_if<runtime::Launch>(&lowered_.program.steps[s]);
      if (launch == nullptr) continue;
      Kernel& kernel = *lowered_.kernels[launch->kernel];
      while (reuse_one(s, *launch, kernel)) {
      }
    }
    return std::move(shares_);
  }

 private:
  bool reuse_one(uint32_t step, runtime::Launch& launch, Kernel& kernel) {
    for (uint32_t out = 0; out < kernel.buffers.size(); ++out) {
      const TensorId made = launch.buffers[out];
      if (kernel.buffers[out].read || lives_[made.index].first != step || !(in_arena(made) || is_output(made)))
        continue;
      const auto address = only_store(kernel, {out});
      if (!address) continue;
      for (uint32_t in = 0; in < kernel.buffers.size(); ++in) {
        if (!fits(step, launch, kernel, in, out) || !could_load_only_at(kernel, {in}, *address)) continue;
        load_only_at(kernel, {in}, *address);
        // The lifetimes meet in this step, so the block is passed on; the tensors stay separate.
        shares_[made.index] = launch.buffers[in];
        launch.buffers[in] = made;
        unify(kernel, launch.buffers, {out}, {in});
        return true;
      }
    }
    return false;
  }
  void reuse_first(uint32_t step, const runtime::ExternCall& call) {
    const ops::OpDef* def = ops::find(call.op);
    if (def == nullptr || !def->starts_as_first || call.args.empty() || call.results.size() != 1) return;
    const auto* from = std::get_if<TensorId>(&call.args[0]);
    const TensorId made = call.results[0];
    if (from == nullptr || !made.valid() || !in_arena(*from) || !(in_arena(made) || is_output(made))) return;
    if (lives_[made.index].first != step || lives_[from->index].last != step || lives_[from->index].first == step)
      return;
    if (made_by_call(head_of(*from))) return;  // in no arena: the call has no place for its result
    if (lies_alike(*from, made) && is_read_once(step, *from)) shares_[made.index] = *from;
  }
  bool lies_alike(TensorId a, TensorId b) const {
    const auto& tensors = lowered_.program.tensors;
    return lie_alike(sizes_, lowered_.program, a, b) &&
           sizes_.expr(tensors[a.index].bytes) == sizes_.expr(tensors[b.index].bytes);
  }
  // Whether nothing else in this step reads the tensor, neither through a view nor through an alias made by an earlier
  // call.
  bool is_read_once(uint32_t step, TensorId id) const {
    int times = 0;
    for_each_tensor(lowered_.program.steps[step],
                    [&](TensorId other) { times += owner(lowered_.program, other) == id; });
    return times == 1 && std::none_of(aliases_.begin(), aliases_.end(), [&](const Alias& alias) {
             return owner(lowered_.program, alias.argument) == id;
           });
  }
  bool in_arena(TensorId id) const { return lowered_.program.tensors[id.index].home == Home::Arena; }
  bool is_output(TensorId id) const { return lowered_.program.tensors[id.index].home == Home::Fresh; }
  // The executor copies a result which another holder may share.
  bool made_by_call(TensorId id) const { return lowered_.program.tensors[id.index].home == Home::Extern; }
  // A call without a rule may return memory of its arguments (aten::view.dtype). A block of the arena then ends with
  // its own tensor, which the executor does not see.
  bool may_lie_in_arena(TensorId id) const {
    if (in_arena(owner(lowered_.program, id))) return true;
    return std::any_of(aliases_.begin(), aliases_.end(), [&](const Alias& alias) {
      return alias.result == id && alias.argument != id && may_lie_in_arena(alias.argument);
    });
  }
  TensorId head_of(TensorId id) const {
    while (shares_[id.index].valid()) id = shares_[id.index];
    return id;
  }
  bool fits(uint32_t step, const runtime::Launch& launch, const Kernel& kernel, uint32_t in, uint32_t out) const {
    if (in == out || kernel.buffers[in].written || kernel.buffers[in].dtype != kernel.buffers[out].dtype) return false;
    const TensorId from = launch.buffers[in], to = launch.buffers[out];
    if (made_by_call(from) && may_lie_in_arena(from)) return false;
    if (!(in_arena(from) || made_by_call(from)) || lives_[from.index].last != step || lives_[from.index].first == step)
      return false;
    // A tensor allocated by a call has the sizes of the call, not of the output.
    if (is_output(to) && made_by_call(head_of(from))) return false;
    const auto& tensors = lowered_.program.tensors;
    return tensors[from.index].device == tensors[to.index].device &&
           sizes_.expr(tensors[from.index].bytes) == sizes_.expr(tensors[to.index].bytes);
  }

  SizeTable& sizes_;
  const std::vector<Lifetime>& lives_;
  const std::vector<Alias>& aliases_;
  Lowered& lowered_;
  std::vector<TensorId> shares_;
};

}  // namespace

void write_in_place(SizeTable& sizes, Lowered& lowered) { Writer(sizes, lowered).run(); }

std::vector<TensorId> reuse_in_place(SizeTable& sizes, const std::vector<Lifetime>& lives,
                                     const std::vector<Alias>& aliases, Lowered& lowered) {
  return Reuser(sizes, lives, aliases, lowered).run();
}

}  // namespace cresset::lower
