#include "lower/lower.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "base/log.h"
#include "base/options.h"
#include "fuse/plan.h"
#include "lower/in_place.h"
#include "lower/kernel_titles.h"
#include "lower/lifetimes.h"
#include "lower/memory_plan.h"
#include "lower/slots.h"
#include "ops/index_reads.h"

namespace cresset::lower {
namespace {

using runtime::Copy;
using runtime::ExternArg;
using runtime::ExternCall;
using runtime::Home;
using runtime::Launch;

class Lowering {
 public:
  Lowering(const Graph& graph, const driver::Options& options)
      : graph_(graph),
        options_(options),
        plan_(fuse::plan(graph, options)),
        sizes_(graph.env()),
        slots_(graph, *plan_.memory, sizes_, out_.program) {}

  Lowered run() {
    out_.program.locations = graph_.locations;
    find_homes();
    for (fuse::Unit& unit : plan_.units) unit.node.valid() ? add_call(unit) : add_launch(unit);
    compute_numbers_first();
    add_index_sites();
    finish();
    plan_memory(aliases_, sizes_, out_);
    sizes_.finish(out_.program);
    return std::move(out_);
  }

 private:
  const fuse::Place& place(ValueId v) { return *plan_.memory->find(v); }

  // Whether the plan provides the memory of the results. It does so for operators whose results have the sizes and
  // strides of their rule and share no memory.
  static bool has_planned_results(const graph::Node& node) {
    const ops::OpDef* def = ops::find(node.op);
    return def != nullptr && def->op_class == ops::OpClass::Extern && !node.through_aten &&
           !fuse::may_alias_arguments(node);
  }

  // Finds the computed values which leave the call, and the values allocated by ATen.
  void find_homes() {
    std::vector<ValueId> escaping;
    for (ValueId v : graph_.outputs) escaping.push_back(place(v).base);
    for (const fuse::Unit& unit : plan_.units) {
      if (!unit.node.valid()) continue;
      const graph::Node& node = graph_.node(unit.node);
      if (has_planned_results(node)) continue;
      for (const ValueId v : node.results) slots_.extern_home(v);
    }
    // A result which may share memory with arguments keeps them alive, in or after the call.
    for (auto unit = plan_.units.rbegin(); unit != plan_.units.rend(); ++unit) {
      if (!unit->node.valid() || !fuse::may_alias_arguments(graph_.node(unit->node))) continue;
      for (ValueId w : unit->writes) {
        const bool escapes = std::find(escaping.begin(), escaping.end(), w) != escaping.end();
        for (ValueId r : unit->reads) {
          if (escapes) escaping.push_back(r);
          alias_values_.emplace_back(w, r);
        }
      }
    }
    for (ValueId v : escaping) slots_.escape(v);
  }

  void add_launch(fuse::Unit& unit) {
    Launch launch{.kernel = static_cast<uint32_t>(out_.kernels.size()), .device = {}, .buffers = {}, .symbols = {}};
    const Device device = fuse::device_of(graph_, unit.group);
    launch.device = device.kind;
    for (ValueId v : unit.built.buffers) launch.buffers.push_back(v.valid() ? slots_.base(v) : TensorId{});
    for (const fuse::BuiltKernel::Report& report : unit.built.reports)
      launch.buffers[report.buffer] = slots_.report(report.site, device);
    if (titles_) out_.program.kernel_text.push_back(kernel_title(graph_, unit));
    out_.kernels.push_back(std::move(unit.built.kernel));
    out_.program.steps.emplace_back(std::move(launch));
  }

  // Launches on the CPU which need nothing of another device come first, in their order. Launches on a GPU then follow
  // each other, and may be a part of one CUDA graph.
  void compute_numbers_first() {
    auto& steps = out_.program.steps;
    const auto on_gpu = [](const runtime::Step& step) {
      const auto* launch = std::get_if<Launch>(&step);
      return launch != nullptr && launch->device != DeviceKind::Cpu;
    };
    if (std::none_of(steps.begin(), steps.end(), on_gpu)) return;
    std::unordered_set<TensorId> later;  // written by steps that stay
    std::vector<runtime::Step> first, rest;
    for (runtime::Step& step : steps) {
      const auto* launch = std::get_if<Launch>(&step);
      bool waits = launch == nullptr || launch->device != DeviceKind::Cpu;
      for_each_tensor(step, [&](TensorId id) { waits |= later.contains(owner(out_.program, id)); });
      if (waits)
        for_each_tensor(step, [&](TensorId id) {
          if (writes(step, id)) later.insert(owner(out_.program, id));
        });
      (waits ? rest : first).push_back(std::move(step));
    }
    steps = std::move(first);
    std::move(rest.begin(), rest.end(), std::back_inserter(steps));
  }

  void add_index_sites() {
    for (const fuse::DataIndices::Site& site : plan_.memory->data_indices().sites()) {
      const graph::Node& node = graph_.node(site.node);
      const sym::ExprId extent = ops::OpArgs(graph_, node.args).tensor(0).sizes[site.dim];
      const std::vector<ops::IndexRead> reads = ops::index_reads(graph_, node);
      const auto read = std::find_if(reads.begin(), reads.end(), [&](const auto& r) { return r.dim == site.dim; });
      out_.program.index_sites.push_back({.fault = ops::find(node.op)->index_fault,
                                          .dim = static_cast<uint32_t>(read->named),
                                          .extent = sizes_.ref(extent),
                                          .location = node.location});
    }
  }

  void add_call(const fuse::Unit& unit) {
    const graph::Node& node = graph_.node(unit.node);
    ExternCall call{.op = node.op, .args = {}, .results = {}, .location = node.location};
    for (const graph::Arg& arg : node.args)
      call.args.push_back(std::visit([&](const auto& a) { return convert(a); }, arg));
    for (ValueId v : node.results) call.results.push_back(slots_.base(v));
    out_.program.steps.emplace_back(std::move(call));
  }
  template <class T>
  ExternArg convert(const T& arg) {
    return arg;
  }
  ExternArg convert(ValueId v) { return slots_.value(v); }
  ExternArg convert(sym::ExprId e) { return sizes_.ref(e); }
  ExternArg convert(const std::vector<sym::ExprId>& es) { return sizes_.refs(es); }
  ExternArg convert(const std::vector<graph::OptionalValue>& values) {
    std::vector<std::optional<TensorId>> tensors;
    for (const graph::OptionalValue& v : values)
      tensors.push_back(v ? std::optional<TensorId>(slots_.value(*v)) : std::nullopt);
    return tensors;
  }

  ValueId mutated(const graph::Mutation& m) const {
    return (m.is_constant ? graph_.constants : graph_.inputs)[m.input];
  }
  bool is_mutated(ValueId base) const {
    for (const graph::Mutation& m : graph_.mutations)
      if (mutated(m) == base && m.value != base) return true;
    return false;
  }

  // Outputs come first, then mutations. Data of an input which an output or another mutation reads is saved before the
  // input changes.
  void finish() {
    for (ValueId v : graph_.outputs) {
      const TensorId from = slots_.value(v);
      out_.program.outputs.push_back(is_mutated(place(v).base) ? saved(v, from, Home::Fresh) : from);
    }
    std::vector<Copy> copies;
    for (const graph::Mutation& m : graph_.mutations) {
      if (m.value == mutated(m)) continue;
      TensorId from = slots_.value(m.value);
      if (is_mutated(place(m.value).base)) from = saved(m.value, from, Home::Arena);
      copies.push_back({from, slots_.base(mutated(m)), m.unseen});
    }
    const bool early = may_write_early();
    auto& steps = out_.program.steps;
    for (const Copy& copy : copies)
      steps.insert(early ? steps.begin() + earliest(copy) : steps.end(), runtime::Step(copy));
    if (early) write_in_place(sizes_, out_);
    for (const auto& [result, argument] : alias_values_)
      aliases_.push_back({slots_.base(result), slots_.base(argument)});
  }

  // Writes come last, so that a call which raises has written nothing. Where no step can raise, a write comes as soon
  // as its source is complete and its target was read for the last time. The memory of the source is then free earlier.
  // Constants may share memory with one another, unless the options exclude it.
  bool may_write_early() const {
    const auto can_raise = [this](const runtime::Step& step) {
      const auto* call = std::get_if<ExternCall>(&step);
      return call != nullptr && !never_raises(*call);
    };
    return alias_values_.empty() && std::none_of(out_.program.steps.begin(), out_.program.steps.end(), can_raise) &&
           (options_.constants_apart || std::none_of(graph_.mutations.begin(), graph_.mutations.end(),
                                                     [](const graph::Mutation& m) { return m.is_constant; }));
  }
  // Calls on a GPU return before it sees any data.
  bool never_raises(const ExternCall& call) const {
    const ops::OpDef* def = ops::find(call.op);
    if (def != nullptr && def->never_raises) return true;
    bool later = def != nullptr && ops::raises_for_data_alone(ops::traits(call.op).raises);
    for_each_tensor(runtime::Step(call),
                    [&](TensorId id) { later &= out_.program.tensors[id.index].device.kind == DeviceKind::Cuda; });
    return later;
  }
  std::ptrdiff_t earliest(const Copy& copy) const {
    const auto& steps = out_.program.steps;
    const TensorId from = owner(out_.program, copy.from), to = owner(out_.program, copy.to);
    const auto holds_up = [&](const runtime::Step& step) {
      bool found = false;
      for_each_tensor(step, [&](TensorId id) {
        const TensorId base = owner(out_.program, id);
        found |= base == to || (base == from && writes(step, id));
      });
      return found;
    };
    return steps.rend() - std::find_if(steps.rbegin(), steps.rend(), holds_up);
  }
  bool writes(const runtime::Step& step, TensorId id) const {
    if (const auto* copy = std::get_if<Copy>(&step)) return copy->to == id;
    if (const auto* call = std::get_if<ExternCall>(&step))
      return std::find(call->results.begin(), call->results.end(), id) != call->results.end();
    const auto* launch = std::get_if<Launch>(&step);
    for (size_t i = 0; launch != nullptr && i < launch->buffers.size(); ++i)
      if (launch->buffers[i] == id && out_.kernels[launch->kernel]->buffers[i].written) return true;
    return false;
  }

  TensorId saved(ValueId v, TensorId from, Home home) {
    const TensorId to = slots_.fresh(v, home);
    out_.program.steps.emplace_back(Copy{from, to});
    return to;
  }

  const Graph& graph_;
  const driver::Options& options_;
  fuse::Plan plan_;
  Lowered out_;
  SizeTable sizes_;
  Slots slots_;
  std::vector<std::pair<ValueId, ValueId>> alias_values_;
  std::vector<Alias> aliases_;
  // For readers of a profile or the log; else no titles are made.
  const bool titles_ = option_flag(Option::PROFILE_KERNELS) || log::enabled(log::Area::Kernels);
};

}  // namespace

Result<Lowered> lower(const graph::Graph& graph, const driver::Options& options) {
  return Lowering(graph, options).run();
}

}  // namespace cresset::lower
