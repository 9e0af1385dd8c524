#include "frontend/capture_run.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_symnode.h>

#include <chrono>

#include "bridge/capture_kernel.h"
#include "bridge/sym_node.h"
#include "frontend/absent_attribute.h"
#include "frontend/errors.h"
#include "frontend/location.h"
#include "sym/explain.h"

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

struct StandIns {
  std::vector<PyRef> tensors, ints;
};

StandIns make_stand_ins(bridge::Capture& capture, const Variant& variant, const CallLeaves& leaves,
                        const ShapeProfile* profile) {
  LeafNames names;
  names.collect(variant.args);
  names.collect(variant.kwargs);
  StandIns out;
  for (size_t i = 0; i < leaves.tensors.size(); ++i) {
    PyRef python = checked(THPVariable_Wrap(leaves.tensors[i]));
    std::vector<bridge::DimMark> marks = marks_of(python.get(), leaves.tensors[i].dim());
    if (profile != nullptr) {
      marks.resize(static_cast<size_t>(leaves.tensors[i].dim()));
      profile->mark_static(names.tensors[i], marks);
    }
    at::Tensor stand_in = capture.add_input(leaves.tensors[i], names.tensors[i], marks);
    out.tensors.push_back(checked(THPVariable_Wrap(std::move(stand_in))));
  }
  for (size_t i = 0; i < leaves.ints.size(); ++i) {
    py::object value = py::cast(capture.add_int_argument(leaves.ints[i], names.ints[i]));
    out.ints.push_back(PyRef::steal(value.release().ptr()));
  }
  return out;
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

// The message of the pending Python exception, which is cleared.
std::string take_python_error() {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyRef t = PyRef::steal(type), v = PyRef::steal(value), tb = PyRef::steal(trace);
  std::string text = t ? ((PyTypeObject*)t.get())->tp_name : "?";
  PyRef message = v ? PyRef::steal(PyObject_Str(v.get())) : PyRef();
  const char* utf8 = message ? PyUnicode_AsUTF8(message.get()) : nullptr;
  PyErr_Clear();
  if (utf8 != nullptr) text += std::string(": ") + utf8;
  return text;
}

// Whether the function left its argument containers as they were given.
bool containers_unchanged(const Variant& variant, PyObject* args, PyObject* kwargs, const StandIns& given) {
  CallLeaves after;
  const auto same_shape = [&](const ArgSpec& spec, PyObject* object) {
    ArgSpec copy = spec;
    return match(copy, object, after, nullptr);
  };
  // Symbolic ints do not match as ints; such calls are rare enough to be trusted.
  if (!given.ints.empty()) return true;
  if (!same_shape(variant.args, args) || !same_shape(variant.kwargs, kwargs)) return false;
  for (size_t i = 0; i < after.tensors.size(); ++i)
    if (!after.tensors[i].is_same(THPVariable_Unpack(given.tensors[i].get()))) return false;
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

class CaptureRun {
 public:
  CaptureRun(PyObject* function, const CompileOptions& options, const CallLeaves& leaves, Variant& variant,
             ShapeProfile* profile)
      : function_(function),
        profile_(profile),
        options_(options),
        leaves_(leaves),
        variant_(variant),
        capture_(std::make_shared<bridge::Capture>(options.dynamic)) {}

  void run(PyObject* args, PyObject* kwargs) {
    for (const ModuleGuards::NamedTensor& t : variant_.modules.tensors())
      capture_->name_constant(THPVariable_Unpack(t.tensor), t.name);
    StandIns stand_ins = make_stand_ins(*capture_, variant_, leaves_, profile_);
    size_t next_tensor = 0, next_int = 0;
    PyRef traced_args = substitute(variant_.args, args, stand_ins.tensors, next_tensor, stand_ins.ints, next_int);
    PyRef traced_kwargs = substitute(variant_.kwargs, kwargs, stand_ins.tensors, next_tensor, stand_ins.ints, next_int);
    PyRef result = evaluate(traced_args.get(), traced_kwargs.get());
    if (!variant_.eager_reason.empty()) return;
    std::string changed;
    if (!variant_.modules.unchanged(&changed)) return refuse("the call changes state: " + changed);
    if (!containers_unchanged(variant_, traced_args.get(), traced_kwargs.get(), stand_ins))
      return refuse("the call changes a container among its arguments");
    make_result(result.get());
    if (!variant_.eager_reason.empty()) return;
    result = PyRef();
    traced_args = traced_kwargs = PyRef();
    check_escapes(stand_ins);
  }

  // Compiles what was captured.
  void compile() {
    Totals& totals = mutable_totals();
    bridge::Captured captured = capture_->finish(builder_->tensors);
    if (options_.fullgraph && !captured.data_reads.empty())
      return refuse("what runs depends on a number read from tensor data at " + captured.data_reads[0].location);
    const std::shared_ptr<sym::ShapeEnv> env = captured.graph->env_ptr();
    std::unordered_map<sym::VarId, uint32_t> slots;
    for (uint32_t i = 0; i < captured.symbols.size(); ++i) slots.emplace(captured.symbols[i].var, i);
    check_marks(*env);
    totals.operators_captured += captured.operators;
    totals.shape_rule_entries += captured.shape_rule_entries;
    totals.generic_rule_entries += captured.generic_rule_entries;
    totals.shape_memo_hits += captured.shape_memo_hits;
    std::vector<at::Tensor> inputs(leaves_.tensors.begin(), leaves_.tensors.end());
    {
      py::gil_scoped_release no_gil;
      variant_.entry = std::make_unique<bridge::Entry>(std::move(captured), inputs, options_.code, options_.keep_text);
    }
    check_marks(*env);
    variant_.numbers = sym::SizeProgram::compile(env->pool(), builder_->numbers, slots);
    variant_.symbol_count = variant_.entry->symbol_count();
    if (profile_ != nullptr) {
      profile_->note_outcome(*env);
      profile_->save();
    }
    count(totals);
  }

  static Totals& mutable_totals();

 private:
  // A dimension that the user marked dynamic must not have been pinned.
  static void check_marks(sym::ShapeEnv& env) {
    if (env.violations().empty()) return;
    set_error("ConstraintError", sym::explain_violations(env));
    throw PythonError{};
  }

  void refuse(std::string why) { variant_.eager_reason = std::move(why); }

  PyRef evaluate(PyObject* args, PyObject* kwargs) {
    LocationTracker locations;
    capture_->locate = [&](bridge::Capture& c) { locations.update(c); };
    capture_->symbolic_number = &symbolic_number;
    PyRef result;
    try {
      bridge::Capture::Scope scope(*capture_);
      CompilingFlag compiling;
      LegacyNew legacy_new;
      result = PyRef::steal(PyObject_Call(function_, args, kwargs));
    } catch (...) {
      capture_->locate = nullptr;
      throw;
    }
    capture_->locate = nullptr;
    if (!capture_->aborted().empty()) {
      PyErr_Clear();
      refuse(capture_->aborted() + where());
    } else if (!result) {
      if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) || PyErr_ExceptionMatches(PyExc_SystemExit))
        throw PythonError{};
      refuse("the call raised " + take_python_error());
      variant_.raised = true;
    }
    return result;
  }

  std::string where() const {
    const auto& locations = capture_->graph().locations;
    const std::string& at = locations[capture_->graph().current_location];
    return at.empty() ? "" : " at " + at;
  }

  void make_result(PyObject* result) {
    builder_ = std::make_unique<RecipeBuilder>(*capture_);
    try {
      variant_.result = builder_->build(result, "result");
      variant_.shared_slots = builder_->shared_slots;
    } catch (const UnsupportedResult& e) {
      refuse("the result holds " + e.path + " of type " + e.type_name + ", which no recipe rebuilds");
    }
  }

  // Stand-ins that live on after the call were stored somewhere: that write has no replay.
  void check_escapes(StandIns& stand_ins) {
    std::unordered_map<c10::TensorImpl*, int> kept;
    for (const PyRef& t : stand_ins.tensors) kept[THPVariable_Unpack(t.get()).unsafeGetTensorImpl()] = 1;
    for (const at::Tensor& t : builder_->tensors) {
      kept[t.unsafeGetTensorImpl()] = 1;
      if (t.is_view()) kept[t._base().unsafeGetTensorImpl()] = 1;  // autograd's view keeps its base
    }
    const auto expected = [&] { return static_cast<int64_t>(kept.size()) + capture_->lifted_constants(); };
    if (capture_->live_tensors() <= expected()) return;
    collect_garbage();
    if (capture_->live_tensors() > expected()) refuse("the call stores a tensor where it outlives the call");
  }

  void count(Totals& totals) const {
    const driver::Stats& s = variant_.entry->stats();
    ++totals.graphs;
    totals.nodes += s.nodes_captured;
    totals.guards_asked += static_cast<int64_t>(variant_.entry->env()->guards().size());
    totals.guards_checked += static_cast<int64_t>(variant_.entry->guards().size());
    totals.steps_proved += variant_.entry->validation().proved;
    totals.steps_not_proved += variant_.entry->validation().not_proved;
    totals.ms_validation += variant_.entry->validation().ms;
    totals.kernels += s.kernels;
    totals.distinct_kernels += s.distinct_kernels;
    totals.extern_calls += s.extern_calls;
    totals.ms_lowering += s.ms_passes + s.ms_lower;
    totals.ms_codegen += s.ms_codegen;
    totals.programs_from_disk += s.programs_from_disk;
  }

  PyObject* function_;
  ShapeProfile* profile_;
  const CompileOptions& options_;
  const CallLeaves& leaves_;
  Variant& variant_;
  std::shared_ptr<bridge::Capture> capture_;
  std::unique_ptr<RecipeBuilder> builder_;
};

Totals& CaptureRun::mutable_totals() {
  static Totals totals;  // under the GIL
  return totals;
}

thread_local bool capturing = false;

// The capture kernels go onto torch's operators once a process: counted apart from what a capture takes.
void install_once() {
  const double begin = now_ms();
  bridge::install_capture_kernels();
  answer_torch_function_quickly();
  live_totals().ms_setup += now_ms() - begin;
}

// Capturing makes many objects, none of them garbage in cycles: a full collection in the middle costs more than it all.
class NoCollection {
 public:
  NoCollection() : was_enabled_(PyGC_Disable() != 0) {}
  ~NoCollection() {
    if (was_enabled_) PyGC_Enable();
  }
  NoCollection(const NoCollection&) = delete;

 private:
  bool was_enabled_;
};

}  // namespace

bool is_capturing() { return capturing; }
Totals totals() { return CaptureRun::mutable_totals(); }
void reset_totals() { CaptureRun::mutable_totals() = Totals{}; }
Totals& live_totals() { return CaptureRun::mutable_totals(); }

void capture_call(PyObject* function, PyObject* args, PyObject* kwargs, const CompileOptions& options,
                  const CallLeaves& leaves, Variant& variant, ShapeProfile* profile) {
  install_once();
  const double begin = now_ms();
  const NoCollection no_collection;
  CaptureRun run(function, options, leaves, variant, profile);
  capturing = true;
  try {
    run.run(args, kwargs);
  } catch (const bridge::CaptureAbort& e) {
    variant.eager_reason = e.what_without_backtrace();
  } catch (...) {
    capturing = false;
    throw;
  }
  capturing = false;
  live_totals().ms_capture += now_ms() - begin;
  try {
    if (variant.eager_reason.empty()) run.compile();
  } catch (const bridge::CaptureAbort& e) {  // a result that has no place in a program
    variant.eager_reason = e.what_without_backtrace();
  }
}

}  // namespace cresset::frontend
