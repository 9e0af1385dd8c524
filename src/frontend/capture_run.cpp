#include "frontend/capture_run.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_symnode.h>

#include <chrono>

#include "bridge/capture_kernel.h"
#include "bridge/sym_node.h"
#include "frontend/errors.h"
#include "frontend/location.h"
#include "frontend/session.h"
#include "frontend/symbols.h"

namespace cresset::frontend {
namespace {

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// cresset.mark_dynamic and its kin leave {dim: (kind, min, max)} on the tensor.
std::vector<bridge::DimMark> marks_of(PyObject* tensor, int64_t rank) {
  std::vector<bridge::DimMark> marks;
  PyRef table = PyRef::steal(PyObject_GetAttrString(tensor, "_cresset_marks"));
  if (!table || !PyDict_Check(table.get())) {
    PyErr_Clear();
    return marks;
  }
  marks.resize(static_cast<size_t>(rank));
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(table.get(), &position, &key, &value)) {
    const long dim = PyLong_AsLong(key);
    if (dim < 0 || dim >= rank || !PyTuple_Check(value)) continue;
    const std::string kind = PyUnicode_AsUTF8(PyTuple_GET_ITEM(value, 0));
    bridge::DimMark& mark = marks[static_cast<size_t>(dim)];
    if (kind == "static") mark.policy = sym::Policy::Static;
    if (kind == "dynamic") mark.policy = sym::Policy::MarkedDynamic;
    if (PyTuple_GET_ITEM(value, 1) != Py_None) mark.range.lo = PyLong_AsLongLong(PyTuple_GET_ITEM(value, 1));
    if (PyTuple_GET_ITEM(value, 2) != Py_None) mark.range.hi = PyLong_AsLongLong(PyTuple_GET_ITEM(value, 2));
  }
  return marks;
}

// Paths of the spec's tensors and ints, and the Python tensors, in order.
struct LeafNames {
  std::vector<std::string> tensors, ints;
  void collect(const ArgSpec& spec) {
    if (spec.kind == ArgSpec::Kind::Tensor) tensors.push_back(spec.path);
    if (spec.kind == ArgSpec::Kind::Int) ints.push_back(spec.path);
    for (const ArgSpec& c : spec.children) collect(c);
  }
};

// The caller's tensors take part themselves; symbolic ints are new objects.
std::vector<PyRef> enter_arguments(bridge::Capture& capture, const Variant& variant, const CallLeaves& leaves) {
  LeafNames names;
  names.collect(variant.args);
  names.collect(variant.kwargs);
  for (size_t i = 0; i < leaves.tensors.size(); ++i) {
    PyRef python = checked(THPVariable_Wrap(leaves.tensors[i]));
    capture.add_guest(leaves.tensors[i], names.tensors[i], marks_of(python.get(), leaves.tensors[i].dim()));
  }
  std::vector<PyRef> ints;
  for (size_t i = 0; i < leaves.ints.size(); ++i) {
    py::object value = py::cast(capture.add_int_argument(leaves.ints[i], names.ints[i]));
    ints.push_back(PyRef::steal(value.release().ptr()));
  }
  return ints;
}

// torch.compiler.is_compiling() is what model code asks before it looks at data.
class CompilingFlag {
 public:
  CompilingFlag() : module_(PyRef::steal(PyImport_ImportModule("torch.compiler"))) { set(+1); }
  ~CompilingFlag() {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    set(-1);
    PyErr_Restore(type, value, trace);
  }

 private:
  void set(int step) {
    static int depth = 0;  // under the GIL
    depth += step;
    if (module_) PyObject_SetAttrString(module_.get(), "_is_compiling_flag", depth > 0 ? Py_True : Py_False);
    PyErr_Clear();
  }
  PyRef module_;
};

// Tensor.new(sizes...) looks for a backend by the dispatch key, which trace tensors do not have; while one is captured
// the method is done by torch.empty.
class LegacyNew {
 public:
  LegacyNew() {
    PyRef api = PyRef::steal(PyImport_ImportModule("cresset._capture_patches"));
    guard_ = api ? PyRef::steal(PyObject_CallMethod(api.get(), "install", nullptr)) : PyRef();
    PyErr_Clear();
  }
  ~LegacyNew() {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (guard_) PyRef::steal(PyObject_CallNoArgs(guard_.get()));
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
  }

 private:
  PyRef guard_;
};

// The pending Python exception, set aside while other code runs.
class SetAside {
 public:
  SetAside() { PyErr_Fetch(&type_, &value_, &trace_); }
  ~SetAside() { PyErr_Restore(type_, value_, trace_); }
  SetAside(const SetAside&) = delete;
  void remove_symbols() {
    PyErr_NormalizeException(&type_, &value_, &trace_);
    auto* exception = (PyBaseExceptionObject*)value_;
    PyRef args = without_symbols(PyRef::borrow(exception->args));
    if (args.get() == exception->args) return;
    PyObject* old = std::exchange(exception->args, args.release());
    Py_DECREF(old);
  }

 private:
  PyObject *type_, *value_, *trace_;
};

// Whether the function left its argument containers as they were given.
bool containers_unchanged(const Variant& variant, PyObject* args, PyObject* kwargs, const CallLeaves& given) {
  CallLeaves after;
  if (!match(variant.args, args, after, nullptr) || !match(variant.kwargs, kwargs, after, nullptr)) return false;
  for (size_t i = 0; i < after.tensors.size(); ++i)
    if (!after.tensors[i].is_same(given.tensors[i])) return false;
  return true;
}

void collect_garbage() {
  PyRef gc = PyRef::steal(PyImport_ImportModule("gc"));
  PyRef done = gc ? PyRef::steal(PyObject_CallMethod(gc.get(), "collect", nullptr)) : PyRef();
  PyErr_Clear();
}

// torch's argument parser turns a symbolic number that is given for a tensor into a tensor with the attribute
// _wrapped_number; the tensor's own contents mean nothing. Floats are specialized, with a guard.
std::optional<at::Scalar> symbolic_number(const at::Tensor& tensor) {
  const py::gil_scoped_acquire gil;
  PyRef python = PyRef::steal(THPVariable_Wrap(tensor));
  PyRef number = python ? PyRef::steal(PyObject_GetAttrString(python.get(), "_wrapped_number")) : PyRef();
  PyErr_Clear();
  if (!number) return std::nullopt;
  const py::handle handle(number.get());
  if (torch::is_symint(handle)) return py::cast<c10::SymInt>(handle);
  if (torch::is_symfloat(handle)) return py::cast<c10::SymFloat>(handle).guard_float(__FILE__, __LINE__);
  if (torch::is_symbool(handle)) return py::cast<c10::SymBool>(handle).guard_bool(__FILE__, __LINE__);
  return std::nullopt;
}

// A view whose elements are conjugated or negated when they are read: no program gives such a result.
bool is_lazy(const at::Tensor& tensor) {
  const bridge::TraceTensor* trace = bridge::TraceTensor::from(tensor);
  for (const bridge::ViewChain* link = trace != nullptr ? trace->chain().get() : nullptr; link != nullptr;
       link = link->parent.get()) {
    const std::string_view name = graph::op_name(link->op);
    if (name == "aten::conj_physical" || name == "aten::neg") return true;
  }
  return false;
}

class CaptureRun {
 public:
  CaptureRun(PyObject* function, const CompileOptions& options, const CallLeaves& leaves, Variant& variant)
      : function_(function),
        options_(options),
        leaves_(leaves),
        variant_(variant),
        capture_(std::make_shared<bridge::Capture>(options.dynamic)) {
    if (options.evaluate) session_ = std::make_unique<Session>(variant.facts, *capture_);
  }

  // Runs the call, once and for real. Its result, or nullptr with the function's exception set.
  PyRef run(PyObject* args, PyObject* kwargs) {
    PyRef result = evaluate(args, kwargs);
    if (!result) {
      SetAside exception;
      variant_.raised = true;
      refuse("the call raised");
      capture_->flush("the call raised");
      remove_written_symbols();
      exception.remove_symbols();
      return result;
    }
    make_recipe(args, kwargs, result.get());
    if (variant_.eager_reason.empty()) {
      compile_and_run();
    } else {
      capture_->flush(variant_.eager_reason);
      capture_->rethrow_deferred();
    }
    remove_written_symbols();
    return without_symbols(std::move(result));
  }

  static Totals& mutable_totals();

 private:
  // A dimension that the user marked dynamic must not have been pinned.
  static void check_marks(const sym::ShapeEnv& env) {
    if (env.violations().empty()) return;
    std::string message = "cresset: dimensions marked dynamic would have to be static:";
    for (const sym::Violation& v : env.violations()) {
      const sym::Symbol* symbol = env.symbol(v.var);
      message += "\n  " + (symbol != nullptr ? symbol->source : "?") + " would be pinned to " +
                 std::to_string(v.value) + " by the guard " + env.to_string(v.condition);
      if (!v.reason.op.empty()) message += ", asked by " + v.reason.op;
      if (!v.reason.location.empty()) message += " at " + v.reason.location;
    }
    message +=
        "\nremedy: change these lines so that they hold for any size, or use cresset.maybe_mark_dynamic or no mark";
    set_error("ConstraintError", message);
    throw PythonError{};
  }

  void refuse(std::string why) {
    if (variant_.eager_reason.empty()) variant_.eager_reason = std::move(why);
  }

  PyRef evaluate(PyObject* args, PyObject* kwargs) {
    const auto begin = now_ms();
    bridge::install_capture_kernels();
    for (const ModuleGuards::NamedTensor& t : variant_.modules.tensors())
      capture_->name_constant(THPVariable_Unpack(t.tensor), t.name);
    std::vector<PyRef> ints;
    try {
      ints = enter_arguments(*capture_, variant_, leaves_);
    } catch (const bridge::CaptureAbort& e) {
      refuse(e.what_without_backtrace());
      capture_->flush(variant_.eager_reason);
      return PyRef::steal(PyObject_Call(function_, args, kwargs));
    }
    size_t next = 0;
    const PyRef given_args = with_symbols(variant_.args, args, ints, next);
    const PyRef given_kwargs = with_symbols(variant_.kwargs, kwargs, ints, next);
    if (session_ != nullptr) {
      session_->add_argument(args, checked(Py_BuildValue("(i)", 0)).get());
      session_->add_argument(kwargs, checked(Py_BuildValue("(i)", 1)).get());
    }
    PyRef result = call(given_args.get(), given_kwargs.get());
    mutable_totals().ms_capture += now_ms() - begin;
    return result;
  }

  PyRef call(PyObject* args, PyObject* kwargs) {
    struct Locating {
      bridge::Capture& capture;
      LocationTracker tracker;
      explicit Locating(bridge::Capture& c) : capture(c) {
        capture.locate = [this](bridge::Capture& c) { tracker.update(c); };
      }
      ~Locating() { capture.locate = nullptr; }
    } locating(*capture_);
    capture_->symbolic_number = &symbolic_number;
    const bridge::Capture::Scope scope(*capture_);
    const CompilingFlag compiling;
    const LegacyNew legacy_new;
    return session_ != nullptr ? session_->call(function_, args, kwargs)
                               : PyRef::steal(PyObject_Call(function_, args, kwargs));
  }

  // How later calls make their result; or why they cannot.
  void make_recipe(PyObject* args, PyObject* kwargs, PyObject* result) {
    if (capture_->closed()) return refuse(capture_->why_closed());
    if (!capture_->aborted().empty()) return refuse(capture_->aborted());
    if (session_ == nullptr) check_traced(args, kwargs);
    if (session_ != nullptr && !session_->refusal().empty()) refuse(session_->refusal());
    if (TorchState::now() != variant_.state) refuse("the call changes torch's modes");
    if (!variant_.eager_reason.empty()) return;
    builder_ = std::make_unique<RecipeBuilder>(*capture_);
    if (session_ != nullptr) {
      builder_->existed = [this](PyObject* object) { return session_->existed(object); };
      builder_->argument_path = [this](PyObject* object) { return session_->argument_path(object); };
    }
    const bridge::Capture::Scope scope(*capture_);  // guests answer for their stand-ins
    try {
      if (session_ != nullptr) variant_.effects = build_effects(*builder_, session_->writes());
      variant_.result = builder_->build(result, "result");
      variant_.shared_slots = builder_->shared_slots;
    } catch (const UnsupportedResult& e) {
      return refuse("the result holds " + e.path + " of type " + e.type_name + ", which no recipe rebuilds");
    }
    for (const at::Tensor& t : builder_->tensors)
      if (t.requires_grad()) return refuse("gradients are wanted: run under torch.no_grad() to compile for inference");
    add_bases();
    for (const at::Tensor& t : builder_->tensors)
      if (is_lazy(t)) return refuse("a lazily conjugated or negated result");
    if (options_.fullgraph && capture_->reads_data())
      return refuse("what runs depends on a number read from tensor data");
    if (stored_elsewhere()) {
      collect_garbage();
      if (stored_elsewhere()) refuse("the call stores a tensor where it outlives the call");
    }
  }

  // The old way sees no writes: it compares what they would have changed.
  void check_traced(PyObject* args, PyObject* kwargs) {
    std::string changed;
    if (!variant_.modules.unchanged(&changed)) return refuse("the call changes state: " + changed);
    if (!containers_unchanged(variant_, args, kwargs, leaves_))
      refuse("the call changes a container among its arguments");
  }

  // The values that were written are plain numbers from now on, as they are in later calls.
  void remove_written_symbols() {
    if (session_ == nullptr) return;
    for (const Write& write : session_->writes())
      for (const PyRef& value : write.values) {
        const PyRef plain = without_symbols(value);
        if (plain.get() != value.get()) replace_written(write, value.get(), plain.get());
      }
    PyErr_Clear();
  }
  static void replace_written(const Write& write, PyObject* symbolic, PyObject* plain) {
    if (write.kind == Write::Kind::Cell && PyCell_GET(write.owner.get()) == symbolic)
      PyCell_Set(write.owner.get(), plain);
    if (write.kind == Write::Kind::Attribute) {
      const PyRef now = PyRef::steal(PyObject_GetAttr(write.owner.get(), write.key.get()));
      if (now.get() == symbolic) PyObject_GenericSetAttr(write.owner.get(), write.key.get(), plain);
    } else {
      without_symbols(write.owner);  // a container: in place
    }
    PyErr_Clear();
  }

  // Autograd's record of a view keeps its base alive (tensor._base): that is no escape, but must become real too.
  void add_bases() {
    std::vector<at::Tensor>& tensors = builder_->tensors;
    for (size_t i = 0; i < tensors.size(); ++i) {
      at::Tensor base;
      if (tensors[i].is_view()) base = tensors[i]._base();
      if (!base.defined() || bridge::TraceTensor::from(base) == nullptr) continue;
      const at::Tensor stand_in(c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(bridge::TraceTensor::from(base)));
      if (std::none_of(tensors.begin(), tensors.end(), [&](const at::Tensor& t) { return t.is_same(stand_in); }))
        tensors.push_back(stand_in);
    }
  }

  // Trace tensors that live on, but are no part of the result, were stored somewhere: that write has no replay.
  bool stored_elsewhere() const {
    const std::vector<at::Tensor> held = capture_->held();
    return std::any_of(held.begin(), held.end(), [&](const at::Tensor& t) {
      return std::none_of(builder_->tensors.begin(), builder_->tensors.end(),
                          [&](const at::Tensor& result) { return result.is_same(t); });
    });
  }

  // Compiles what was captured; the first run goes through the same guards as every later one.
  void compile_and_run() {
    capture_->close();
    Totals& totals = mutable_totals();
    bridge::Captured captured = capture_->finish(builder_->tensors);
    const std::shared_ptr<sym::ShapeEnv> env = captured.graph->env_ptr();
    std::unordered_map<sym::VarId, uint32_t> slots;
    for (uint32_t i = 0; i < captured.symbols.size(); ++i) slots.emplace(captured.symbols[i].var, i);
    check_marks(*env);
    totals.operators_captured += captured.operators;
    totals.shape_rule_entries += captured.shape_rule_entries;
    totals.generic_rule_entries += captured.generic_rule_entries;
    const std::vector<at::Tensor> inputs(leaves_.tensors.begin(), leaves_.tensors.end());
    std::vector<int64_t> symbols;
    std::vector<at::Tensor> real;
    {
      py::gil_scoped_release no_gil;
      variant_.entry = std::make_unique<bridge::Entry>(std::move(captured), inputs, options_.code, options_.keep_text);
    }
    check_marks(*env);
    symbols.resize(variant_.entry->symbol_count());
    std::string why;
    const bool same = variant_.entry->matches(inputs, leaves_.ints, symbols.data(), &why);
    CRESSET_CHECK(same, "a new variant rejects the call it was made for: " + why);
    variant_.numbers = sym::SizeProgram::compile(env->pool(), builder_->numbers, slots);
    variant_.symbol_count = variant_.entry->symbol_count();
    count(totals);
    {
      py::gil_scoped_release no_gil;
      real = variant_.entry->run(inputs, symbols.data());
    }
    bridge::Capture::settle(builder_->tensors, real);
  }

  void count(Totals& totals) const {
    const driver::Stats& s = variant_.entry->stats();
    ++totals.graphs;
    totals.nodes += s.nodes_captured;
    totals.kernels += s.kernels;
    totals.distinct_kernels += s.distinct_kernels;
    totals.extern_calls += s.extern_calls;
    totals.ms_lowering += s.ms_passes + s.ms_lower;
    totals.ms_codegen += s.ms_codegen;
  }

  PyObject* function_;
  const CompileOptions& options_;
  const CallLeaves& leaves_;
  Variant& variant_;
  std::shared_ptr<bridge::Capture> capture_;
  std::unique_ptr<Session> session_;  // of the evaluator
  std::unique_ptr<RecipeBuilder> builder_;
};

Totals& CaptureRun::mutable_totals() {
  static Totals totals;  // under the GIL
  return totals;
}

thread_local bool capturing = false;

}  // namespace

bool is_capturing() { return capturing; }
Totals totals() { return CaptureRun::mutable_totals(); }
void reset_totals() { CaptureRun::mutable_totals() = Totals{}; }
Totals& live_totals() { return CaptureRun::mutable_totals(); }

PyRef capture_call(PyObject* function, PyObject* args, PyObject* kwargs, const CompileOptions& options,
                   const CallLeaves& leaves, Variant& variant) {
  struct Capturing {
    Capturing() { capturing = true; }
    ~Capturing() { capturing = false; }
  } now;
  return CaptureRun(function, options, leaves, variant).run(args, kwargs);
}

}  // namespace cresset::frontend
