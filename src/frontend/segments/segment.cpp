#include "frontend/segments/segment.h"

#include <ATen/SavedTensorHooks.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include "base/log.h"
#include "bridge/aten/autograd_history.h"
#include "bridge/capture/graph_cut.h"
#include "bridge/capture/meta_shape_rule.h"
#include "bridge/capture/rng_state.h"
#include "bridge/capture/sym_node.h"
#include "bridge/executor/index_errors.h"
#include "frontend/cache_entries/released_inputs.h"
#include "frontend/cpython/errors.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/stats.h"
#include "frontend/feedback/feedback.h"
#include "frontend/guards/size_marks.h"
#include "frontend/trace_rules/polyfills.h"
#include "frontend/values/exceptions.h"
#include "frontend/values/number_classes.h"
#include "frontend/values/pending_error.h"
#include "frontend/values/symbolic_strings.h"
#include "frontend/values/symbols.h"
#include "frontend/values/wrapper_tensors.h"
#include "ops/op_def.h"
#include "sym/explain.h"

namespace cresset::frontend {
namespace {

// Paths of the spec's tensors and ints, in order.
struct LeafNames {
  std::vector<std::string> tensors, ints;
  std::vector<std::pair<bool, size_t>> numbers;  // in order: (is a float, index among tensors or ints)
  std::unordered_set<std::string> presumed;      // ints which are symbols before they have varied
  void collect(const ArgSpec& spec) {
    if (spec.kind == ArgSpec::Kind::Float) numbers.emplace_back(true, tensors.size());
    if (spec.kind == ArgSpec::Kind::Int) numbers.emplace_back(false, ints.size());
    if (spec.kind == ArgSpec::Kind::Tensor || spec.kind == ArgSpec::Kind::Float) tensors.push_back(spec.path);
    if (spec.kind == ArgSpec::Kind::Int) ints.push_back(spec.path);
    if (spec.kind == ArgSpec::Kind::Int && spec.first) presumed.insert(spec.path);
    for (const ArgSpec& c : spec.children) collect(c);
  }
};

// The marks of the tensor, and those of the profile: sizes that never varied are static.
std::vector<bridge::DimMark> marks_of(PyObject* python, const at::Tensor& tensor, const std::string& name,
                                      const ShapeProfile* profile) {
  std::vector<bridge::DimMark> marks = dim_marks(python, tensor, name);
  if (profile != nullptr) {
    marks.resize(static_cast<size_t>(tensor.dim()));
    profile->mark_static(name, marks);
  }
  return marks;
}

void collect_garbage(int generation) {
  static PyObject* const collect = module_attribute("gc", "collect");
  PyRef::steal(PyObject_CallFunction(collect, "i", generation));
  PyErr_Clear();
}

// Throws if a dimension that the user marked dynamic was specialized.
void check_marks(sym::ShapeEnv& env, const std::vector<sym::FixedSize>& fixed) {
  if (env.violations().empty()) return;
  set_error("ConstraintError", sym::explain_violations(env, fixed));
  throw PythonError{};
}

// Logs dimensions which were specialized although the user suggested that they vary.
void log_suggestions(sym::ShapeEnv& env) {
  if (!log::enabled(log::Area::Guards)) return;
  for (const std::string& line : sym::dropped_suggestions(env)) log::write(log::Area::Guards, line);
}

}  // namespace

GraphSegment::GraphSegment(const CompileOptions& options, std::shared_ptr<CacheEntry> entry, ShapeProfile* profile)
    : options_(options),
      entry_(std::move(entry)),
      profile_(profile),
      capture_(std::make_shared<bridge::Capture>(options.dynamic)) {
  capture_->symbolic_numbers = options.symbolic_numbers || options.fullgraph;
  capture_->symbolic_booleans = options.fullgraph;
  capture_->sizes_stay_free = !options.keep_rejected;
}

namespace {

void add_tensors(PyObject* value, std::vector<at::Tensor>& out) {
  if (THPVariable_Check(value)) return out.push_back(THPVariable_Unpack(value));
  if (!PyTuple_Check(value) && !PyList_Check(value)) return;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) add_tensors(PySequence_Fast_GET_ITEM(value, i), out);
}

}  // namespace

void GraphSegment::settle_native_results(PyObject* value) const {
  std::vector<at::Tensor> tensors;
  if (value != nullptr) add_tensors(value, tensors);
  if (!tensors.empty()) capture_->gradients().settle_native_results(tensors);
}

void GraphSegment::retire() {
  leaves_.clear();
  entry_->guards.end_capture();
  args_ = kwargs_ = given_args_ = given_kwargs_ = {};
  builder_.reset();
  capture_->forget_inputs();
}

int GraphSegment::visit(visitproc visit, void* arg) const {
  for (const PyRef* held : {&args_, &kwargs_, &given_args_, &given_kwargs_}) Py_VISIT(held->get());
  for (const PyRef& part : leaves_.kept) Py_VISIT(part.get());
  for (const PyRef& held : leaves_.state) Py_VISIT(held.get());
  return entry_->visit(visit, arg);
}

void GraphSegment::refuse(BreakReason why) {
  if (entry_->eager_reason.empty()) entry_->eager_reason = std::move(why);
}

void GraphSegment::enter(PyObject* args, PyObject* kwargs) {
  args_ = PyRef::borrow(args);
  kwargs_ = PyRef::borrow(kwargs);
  if (!match(entry_->args, args, leaves_, nullptr) || !match(entry_->kwargs, kwargs, leaves_, nullptr))
    bridge::abort_capture(BreakKind::UnguardedState, "an argument does not equal itself");
  if (!entry_->guards.gather(leaves_, nullptr))
    bridge::abort_capture(BreakKind::UnguardedState, "a tensor among the program's state is gone");
  // Keeps the containers that are inspected at the end of the segment. Other containers may die before: the program
  // releases an iterator at the end of its loop.
  for (PyObject* const container : leaves_.containers)
    if (PyList_CheckExact(container) || PyDict_CheckExact(container)) leaves_.kept.push_back(PyRef::borrow(container));
  LeafNames names;
  names.collect(entry_->args);
  names.collect(entry_->kwargs);
  for (const StateGuards::Input& input : entry_->guards.inputs()) names.collect(input.spec);
  entry_->guards.know(leaves_);
  for (const at::Tensor& tensor : leaves_.tensors) bridge::refresh_history(tensor);
  std::vector<PyRef> floats(leaves_.tensors.size()), ints, numbers;
  const auto python_object = [](py::object value) { return PyRef::steal(value.release().ptr()); };
  for (size_t i = 0; i < leaves_.tensors.size(); ++i) {
    if (std::find(leaves_.floats.begin(), leaves_.floats.end(), i) != leaves_.floats.end()) {
      const c10::SymFloat number = capture_->add_float_argument(leaves_.tensors[i], names.tensors[i]);
      floats[i] = number.is_symbolic() ? python_float(number.toSymNodeImpl())
                                       : checked(PyFloat_FromDouble(number.as_float_unchecked()));
      if (number.is_symbolic())
        floats_.push_back(bridge::SymNode::tensor_of(number.toSymNodeImpl()).unsafeGetTensorImpl());
      continue;
    }
    const PyRef python = checked(THPVariable_Wrap(leaves_.tensors[i]));
    const auto marks = marks_of(python.get(), leaves_.tensors[i], names.tensors[i], profile_);
    if (may_have_marks())
      if (const MarkedDims marked = marked_dims(python.get()); marked.any())
        entry_->marks.emplace_back(static_cast<uint32_t>(i), marked);
    note_fixed(leaves_.tensors[i], names.tensors[i], marks);
    capture_->add_input_proxy(leaves_.tensors[i], names.tensors[i], marks);
  }
  for (size_t i = 0; i < leaves_.ints.size(); ++i)
    adopt(ints.emplace_back(
                  python_object(py::cast(capture_->recorder().add_int_argument(leaves_.ints[i], names.ints[i]))))
              .get());
  presume_varying(std::move(names.presumed));
  for (const auto& [is_float, which] : names.numbers) numbers.push_back(is_float ? floats[which] : ints[which]);
  Symbols symbols{numbers, placed_};
  given_args_ = with_symbols(entry_->args, args, symbols);
  given_kwargs_ = with_symbols(entry_->kwargs, kwargs, symbols);
  entry_->guards.place(leaves_.state, symbols);
  texts_ = std::move(symbols.texts);
  for (const Symbols::Wrapper& wrapper : symbols.wrappers) {
    const bridge::Capture::Scope scope(*capture_);
    give_sizes(wrapper.object, wrapper.sizes.get(), wrapper.strides.get());
  }
}

void GraphSegment::note_fixed(const at::Tensor& tensor, const std::string& name,
                              const std::vector<bridge::DimMark>& marks) {
  for (size_t d = 0; d < marks.size(); ++d)
    if (marks[d].policy == sym::Policy::Static && !marks[d].unbacked)
      fixed_.push_back({c10::str(name, ".size(", d, ")"), tensor.size(static_cast<int64_t>(d))});
}

void GraphSegment::begin_reconstructions(Session* session) {
  builder_ = std::make_unique<ReconstructionBuilder>(*capture_);
  if (session == nullptr) return;
  builder_->existed = [session](PyObject* object) { return session->provenance().existed(object); };
  builder_->holds_function = [session](PyObject* function) { session->frames().learn_what_it_holds(function); };
  builder_->generator_number = [session](PyObject* object) {
    const auto& generators = session->provenance().generators();
    const auto found =
        std::find_if(generators.begin(), generators.end(), [&](const auto& g) { return g.get() == object; });
    return found != generators.end() ? static_cast<int32_t>(found - generators.begin()) : -1;
  };
  builder_->is_older = [session](PyObject* tuple) { return session->provenance().is_older(tuple); };
  builder_->is_opaque = [session](PyObject* object) { return session->provenance().is_opaque(object); };
  builder_->arrays = &session->provenance().arrays();
  builder_->is_address = [session](PyObject* number) { return session->addresses().is_address(number); };
  builder_->sum_of = [session](PyObject* list) -> std::pair<PyRef, PyRef> {
    const Provenance::Sum* const sum = session->provenance().sum_of(list);
    return sum != nullptr ? std::pair{sum->list, sum->items} : std::pair<PyRef, PyRef>();
  };
  builder_->is_of_call = [session](PyObject* object) {
    return is_tensor(object) || session->provenance().argument_path(object) != nullptr ||
           !session->provenance().existed(object);
  };
  builder_->argument_path = [session](PyObject* object) { return session->provenance().way_to(object); };
}

BreakReason GraphSegment::end_reconstructions(uint64_t before) {
  entry_->shared_slots = builder_->shared_slots;
  BreakReason why;
  {
    const py::gil_scoped_release no_gil;
    why = capture_->gradients().record_gradients(builder_->tensors);
  }
  PyErr_Clear();  // the error of autograd's Python code (a checkpoint) is in `why`
  if (!why.empty()) return why;
  const auto wants_gradients = [](const at::Tensor& result) { return result.requires_grad(); };
  if (!at::SavedTensorDefaultHooks::get_tls_state().stack.empty() &&
      std::any_of(builder_->tensors.begin(), builder_->tensors.end(), wants_gradients))
    return {BreakKind::SavedTensorHooks, kPacking};
  add_bases();
  add_held_by_tracebacks();
  add_held_by_arguments();
  add_temporaries(before);
  if (options_.fullgraph && capture_->recorder().reads_data())
    return {BreakKind::DataDependentValue, "what runs depends on a number read from tensor data"};
  // Cycles which hold tensors of the call are young. A full collection costs tens of milliseconds. If it found no such
  // tensors once, the function stores tensors elsewhere, and the full collection is not repeated.
  Feedback* const feedback = Feedback::current();
  const int most = feedback != nullptr && feedback->collected_in_vain ? 1 : 2;
  for (int generation = 0; generation <= most; ++generation) {
    if (!stored_elsewhere(before)) return {};
    collect_garbage(generation);
  }
  if (!stored_elsewhere(before)) return {};
  if (feedback != nullptr) feedback->collected_in_vain = true;
  return {BreakKind::SideEffect, "the call stores a tensor where it outlives the call"};
}

// Whether only the tensor itself refers to its Python object.
static bool is_unknown_to_python(const at::Tensor& tensor) {
  const PyRef object = PyRef::steal(THPVariable_Wrap(tensor));
  return object && Py_REFCNT(object.get()) <= 2;
}

// The autograd graph of a view keeps its base alive (tensor._base), and the viewed tensor if the dtype differs. These
// tensors do not escape, but must become real too.
void GraphSegment::add_bases() {
  std::vector<at::Tensor>& tensors = builder_->tensors;
  const auto is_known = [&](const at::Tensor& tensor) {
    return std::any_of(tensors.begin(), tensors.end(), [&](const at::Tensor& t) { return t.is_same(tensor); });
  };
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].is_view()) continue;
    const at::Tensor whole(tensors[i]._base());
    if (bridge::TraceTensor::from(whole) == nullptr) continue;
    const at::Tensor base(c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(bridge::TraceTensor::from(whole)));
    if (!is_known(base)) tensors.push_back(base);
    if (!torch::autograd::impl::get_view_autograd_meta(tensors[i])->get_backward_view().has_view_fn()) continue;
    for (const at::Tensor& held : capture_->held())
      if (held.is_view() && at::Tensor(held._base()).is_same(whole) && !is_known(held) && is_unknown_to_python(held))
        tensors.push_back(held);
  }
}

// Frames of an exception's traceback hold their locals.
void GraphSegment::add_held_by_tracebacks() {
  std::unordered_set<const bridge::TraceTensor*> known;
  for (const at::Tensor& t : builder_->tensors) known.insert(bridge::TraceTensor::from(t));
  const auto add = [&](PyObject* object) {
    if (!is_tensor(object)) return;
    const bridge::TraceTensor* trace = bridge::TraceTensor::from(tensor_of(object));
    if (trace == nullptr || trace != tensor_of(object).unsafeGetTensorImpl() || !known.insert(trace).second) return;
    builder_->tensors.push_back(tensor_of(object));
  };
  for (const PyRef& traceback : builder_->tracebacks) visit_frames_of(traceback.get(), add);
}

// The segment keeps its arguments, even if the program released them, with the tensors stored in them.
void GraphSegment::add_held_by_arguments() {
  std::unordered_set<const c10::TensorImpl*> known(floats_.begin(), floats_.end());
  for (const at::Tensor& t : builder_->tensors) known.insert(bridge::TraceTensor::from(t));
  const auto add = [&](const at::Tensor& tensor) {
    const c10::TensorImpl* trace = tensor.defined() ? bridge::TraceTensor::from(tensor) : nullptr;
    if (trace != nullptr && trace == tensor.unsafeGetTensorImpl() && known.insert(trace).second)
      builder_->tensors.push_back(tensor);
  };
  for (const PyRef& container : leaves_.kept) {
    const bool is_dict = PyDict_CheckExact(container.get());
    if (!is_dict && !PyList_CheckExact(container.get())) continue;
    const PyRef items = is_dict ? checked(PyDict_Values(container.get())) : container;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
      PyObject* const item = PyList_GET_ITEM(items.get(), i);
      if (is_symfloat(item)) add(bridge::SymNode::tensor_of(node_of(item)));
      if (is_tensor(item)) add(tensor_of(item));
    }
  }
}

// Temporaries of the operation in progress must become real too.
void GraphSegment::add_temporaries(uint64_t since) {
  for (const at::Tensor& t : capture_->held())
    if (static_cast<const bridge::TraceTensor*>(t.unsafeGetTensorImpl())->serial() >= since)
      builder_->tensors.push_back(t);
}

// Proxy tensors that are alive without a reconstruction were stored somewhere, and no replay covers this write.
bool GraphSegment::stored_elsewhere(uint64_t before) {
  const std::vector<at::Tensor> held = capture_->held();
  return std::any_of(held.begin(), held.end(), [&](const at::Tensor& t) {
    const auto* trace = static_cast<const bridge::TraceTensor*>(t.unsafeGetTensorImpl());
    return trace->serial() < before && std::find(floats_.begin(), floats_.end(), trace) == floats_.end() &&
           std::none_of(
               builder_->tensors.begin(), builder_->tensors.end(),
               [&](const at::Tensor& result) { return result.is_same(t); });
  });
}

static bool draws(const graph::Graph& graph) {
  return std::any_of(graph.order.begin(), graph.order.end(),
                     [&](graph::NodeId id) { return bridge::is_random(graph.node(id).op); });
}

// Guards the values of inspected floats and strings.
void GraphSegment::specialize_inputs() {
  size_t next_float = 0;
  specialize_floats(entry_->args, leaves_, capture_->specialized_floats, next_float);
  specialize_floats(entry_->kwargs, leaves_, capture_->specialized_floats, next_float);
  entry_->guards.specialize_floats(leaves_, capture_->specialized_floats, next_float);
  for (const auto& [spec, text] : std::exchange(texts_, {}))
    const_cast<ArgSpec*>(spec)->object = PyRef::borrow(looked_at_string(text.get()));
}

void GraphSegment::compile_and_run() {
  capture_->close();
  specialize_inputs();
  std::vector<at::Tensor> real;
  bridge::Captured once;
  std::string internal_error;
  std::optional<bridge::SavedGenerator> generator;  // a failed attempt has drawn random numbers
  try {
    bridge::Captured captured = capture_->finish(builder_->tensors);
    once = captured.for_one_run();
    if (draws(*captured.graph)) generator.emplace();
    real = run_compiled(std::move(captured));
  } catch (const bridge::CaptureAbort& e) {  // the program cannot represent a result
    refuse(e.reason());
  } catch (const bridge::PredictionError& e) {
    bridge::note_unpredictable(e.op());
    refuse({BreakKind::DataDependentSize, e.what()});
    entry_->raised = true;                       // the next call specializes the operator's sizes
  } catch (const bridge::AssumptionFailed& e) {  // the program may suit other calls
    CRESSET_LOG(GraphBreaks, std::string("one call runs eagerly: ") + e.what_without_backtrace());
  } catch (const InternalError& e) {
    internal_error = e.what();
    refuse({BreakKind::InternalError, "an error of cresset's own: " + internal_error});
  } catch (const PythonError&) {  // misuse
    const SavedError error;
    if (generator) generator->restore();
    run_once(std::move(once));
    throw;
  } catch (const bridge::IndexReported&) {
    capture_->note_failure();
    throw;
  } catch (const c10::Error&) {  // an operator's error, which the program may catch: earlier operators must have run
    capture_->note_failure();
    if (entry_->program != nullptr && !entry_->program->may_run_again(/*put_back=*/true)) throw;
    if (generator) generator->restore();
    run_once(std::move(once));
    capture_->rethrow_deferred();
    throw;
  }
  entry_->in_inference = builder_->in_inference;
  if (refused()) entry_->program.reset();
  if (real.size() == builder_->tensors.size()) return bridge::Capture::settle(builder_->tensors, real);
  if (generator) generator->restore();
  run_once(std::move(once));
  capture_->rethrow_deferred();
  if (!internal_error.empty() &&
      PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "cresset: internal error, the call runs eagerly; please report: %s",
                       internal_error.c_str()) < 0)
    throw PythonError{};
}

bool GraphSegment::leaves_containers(PyObject* args, PyObject* kwargs) const {
  CallLeaves after;
  if (!match(entry_->args, args, after, nullptr) || !match(entry_->kwargs, kwargs, after, nullptr)) return false;
  for (size_t i = 0; i < after.tensors.size(); ++i)
    if (!after.tensors[i].is_same(leaves_.tensors[i]) &&
        std::find(after.floats.begin(), after.floats.end(), i) == after.floats.end())
      return false;
  return true;
}

void GraphSegment::run_once(bridge::Captured captured) {
  if (captured.graph == nullptr) captured = capture_->finish(builder_->tensors);
  bridge::Capture::settle(builder_->tensors, capture_->interpret(captured));
}

std::atomic<bool> keeps_texts = false;

// Views stay index arithmetic. A node of another namespace than ATen's has no operator there.
static void run_through_aten(graph::Graph& graph) {
  for (uint32_t i = 0; i < graph.node_count(); ++i) {
    graph::Node& node = graph.node(graph::NodeId{i});
    const ops::OpDef* const def = ops::find(node.op);
    const bool is_view = def != nullptr && def->op_class == ops::OpClass::View;
    node.through_aten |= !is_view && graph::op_name(node.op).starts_with("aten::");
  }
}

// The first run checks the same guards as later runs.
std::vector<at::Tensor> GraphSegment::run_compiled(bridge::Captured captured) {
  if (std::any_of(captured.outputs.begin(), captured.outputs.end(), [](const auto& spec) { return spec.hidden_alias; }))
    bridge::abort_capture(BreakKind::AliasedWrite,
                          "the call returns an alias of a tensor of the caller's which autograd knows as a new tensor");
  Totals& totals = live_totals();
  const std::shared_ptr<sym::ShapeEnv> env = captured.graph->env_ptr();
  std::unordered_map<sym::VarId, uint32_t> slots;
  for (uint32_t i = 0; i < captured.symbols.size(); ++i) slots.emplace(captured.symbols[i].var, i);
  check_marks(*env, fixed_);
  if (options_.through_aten) run_through_aten(*captured.graph);
  if (options_.guard_filter) entry_->guards.filter(options_.guard_filter.get());
  totals.operators_captured += captured.operators;
  totals.shape_rule_entries += captured.shape_rule_entries;
  totals.generic_rule_entries += captured.generic_rule_entries;
  totals.shape_memo_hits += captured.shape_memo_hits;
  totals.capture_costs.add(captured.costs);
  const std::vector<at::Tensor> inputs(leaves_.tensors.begin(), leaves_.tensors.end());
  std::vector<sym::ExprId> numbers = builder_->numbers;
  numbers.insert(numbers.end(), capture_->asked_numbers.begin(), capture_->asked_numbers.end());
  {
    py::gil_scoped_release no_gil;
    entry_->program = std::make_unique<bridge::GuardedProgram>(std::move(captured), inputs, options_.code,
                                                               options_.keep_text || keeps_texts, numbers);
  }
  entry_->changes_state = entry_->program->writes_state() ||
                          std::any_of(entry_->side_effects.begin(), entry_->side_effects.end(), is_of_state);
  check_marks(*env, fixed_);
  log_suggestions(*env);
  std::vector<int64_t> symbols(entry_->program->symbol_count());
  GuardFailure why;
  const bool same = entry_->program->matches(inputs, leaves_.ints, symbols.data(), &why);
  CRESSET_CHECK(same, "a new cache entry rejects the call it was compiled for: " + why.text);
  entry_->numbers = sym::SizeProgram::compile(env->pool(), builder_->numbers, slots);
  entry_->symbol_count = entry_->program->symbol_count();
  entry_->released = released_inputs(*entry_);
  if (profile_ != nullptr) {
    profile_->note_outcome(*env);
    profile_->note_floats(entry_->args);
    profile_->note_floats(entry_->kwargs);
    profile_->save();
  }
  if (!is_repeated) count();
  py::gil_scoped_release no_gil;
  std::vector<at::Tensor> results;
  capture_->storages().count_writes(-1);
  try {
    results = entry_->program->run(inputs, symbols.data());
  } catch (...) {
    capture_->storages().count_writes(1);
    throw;
  }
  for (const auto& [var, slot] : slots)  // data-dependent sizes: Python may hold them
    if (!env->symbol(var)->hint) env->learn(var, symbols[slot]);
  return results;
}

void GraphSegment::count() const {
  Totals& totals = live_totals();
  driver::Stats s = entry_->program->stats();
  ++totals.graphs;
  totals.nodes += s.nodes_captured;
  if (entry_->program->has_gradients()) {
    ++totals.backward_graphs;
    s.add(entry_->program->backward_stats());
  }
  totals.guards_asked += static_cast<int64_t>(entry_->program->env()->guards().size());
  totals.guards_checked += static_cast<int64_t>(entry_->program->guards().size());
  totals.steps_proved += entry_->program->validation().proved;
  totals.steps_not_proved += entry_->program->validation().not_proved;
  totals.ms_validation += entry_->program->validation().ms;
  totals.kernels += s.kernels;
  totals.distinct_kernels += s.distinct_kernels;
  totals.extern_calls += s.extern_calls;
  totals.ms_lowering += s.ms_passes + s.ms_lower;
  totals.ms_codegen += s.ms_codegen;
  totals.frozen_values += s.frozen_values;
  totals.programs_from_disk += s.programs_from_disk;
}

}  // namespace cresset::frontend
