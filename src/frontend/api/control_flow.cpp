#include "frontend/api/control_flow.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include "bridge/capture/control_flow.h"
#include "frontend/cpython/errors.h"
#include "frontend/segments/call_capture.h"
#include "frontend/session/session.h"

namespace cresset::frontend {
namespace {

constexpr const char* kSubgraph = "cresset.subgraph";

bridge::Capture& capture() { return *bridge::Capture::current(); }

// Whether a subgraph can be captured here: under the evaluator, in an open segment, outside of operators.
bool possible() {
  const bridge::Capture* open = is_capturing() ? bridge::Capture::current() : nullptr;
  return open != nullptr && !open->closed() && open->recording == 0 && Session::current() != nullptr;
}

std::vector<at::Tensor> tensors_of(PyObject* list) {
  std::vector<at::Tensor> out;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) out.push_back(THPVariable_Unpack(PyList_GET_ITEM(list, i)));
  return out;
}

PyRef list_of(const std::vector<at::Tensor>& tensors) {
  PyRef out = checked(PyList_New(0));
  for (const at::Tensor& t : tensors)
    if (PyList_Append(out.get(), checked(THPVariable_Wrap(t)).get()) < 0) throw PythonError{};
  return out;
}

bridge::Subgraph taken(PyObject* capsule) {
  auto* part = static_cast<bridge::Subgraph*>(PyCapsule_GetPointer(capsule, kSubgraph));
  if (part == nullptr) throw PythonError{};
  return std::exchange(*part, {});
}

// Returns None and keeps the reason when the captured subgraph does not fit.
template <class F>
PyObject* attempt(F&& f) {
  HANDLE_TH_ERRORS
  try {
    return f().release();
  } catch (const bridge::CaptureAbort& e) {
    capture().subgraphs().fail_subgraph(e.reason());
    return Py_NewRef(Py_None);
  } catch (const PythonError&) {
    return nullptr;
  }
  END_HANDLE_TH_ERRORS
}

PyObject* begin_subgraph(PyObject*, PyObject* roots) {
  return attempt([&] {
    if (!possible()) return PyRef::borrow(Py_False);
    Session::current()->subgraphs().begin_subgraph(roots);
    capture().subgraphs().begin_subgraph();
    return PyRef::borrow(Py_True);
  });
}

void abandon() {
  Session::current()->subgraphs().end_subgraph();
  capture().subgraphs().abandon_subgraph();
}

PyObject* end_subgraph(PyObject*, PyObject* outputs) {
  return attempt([&]() -> PyRef {
    if (!capture().subgraphs().subgraph_failure().empty()) return abandon(), PyRef::borrow(Py_None);
    auto part = std::make_unique<bridge::Subgraph>();
    try {
      *part = capture().subgraphs().end_subgraph(tensors_of(outputs));
    } catch (const bridge::CaptureAbort&) {
      abandon();
      throw;
    }
    Session::current()->subgraphs().end_subgraph();
    return checked(PyCapsule_New(part.release(), kSubgraph, [](PyObject* capsule) {
      delete static_cast<bridge::Subgraph*>(PyCapsule_GetPointer(capsule, kSubgraph));
    }));
  });
}

// Returns whether the subgraph had failed before, because of its code.
PyObject* abandon_subgraph(PyObject*, PyObject* why) {
  return attempt([&] {
    abandon();
    const char* text = PyUnicode_AsUTF8(why);
    if (text == nullptr) throw PythonError{};
    const bool had_failed = !capture().subgraphs().subgraph_failure().empty();
    capture().subgraphs().fail_subgraph({BreakKind::ControlFlow, text});
    return PyRef::borrow(had_failed ? Py_True : Py_False);
  });
}

// Raises with fullgraph=True: Python must not take the branch, because it may have side effects.
[[noreturn]] void refuse_to_decide(const std::string& why, BreakKind kind) {
  set_error("CaptureError", "cresset: fullgraph=True, but the program cannot be captured whole: " + why +
                                "; remedy: change that line, or drop fullgraph=True to have it decided by Python " +
                                BreakReason(kind, why).advice());
  throw PythonError{};
}

// Adds the reason to the graph break of the following data-dependent branch.
PyObject* explain_subgraph(PyObject*, PyObject* args) {
  return attempt([&] {
    const char *name = nullptr, *why = nullptr;
    if (!PyArg_ParseTuple(args, "sz", &name, &why)) throw PythonError{};
    if (!possible()) return PyRef::borrow(Py_None);
    BreakReason reason = capture().subgraphs().take_subgraph_failure();
    if (why != nullptr) reason = {BreakKind::ControlFlow, why};
    if (!reason.empty()) capture().remark = std::string(name) + " is decided here: " + reason.text();
    if (why == nullptr && capture().symbolic_booleans && !capture().remark.empty())
      refuse_to_decide(capture().remark, reason.empty() ? BreakKind::ControlFlow : reason.kind);
    return PyRef::borrow(Py_None);
  });
}

PyObject* add_cond(PyObject*, PyObject* args) {
  return attempt([&] {
    PyObject *predicate, *if_true, *if_false;
    if (!PyArg_ParseTuple(args, "OOO", &predicate, &if_true, &if_false)) throw PythonError{};
    return list_of(capture().subgraphs().add_cond(THPVariable_Unpack(predicate), taken(if_true), taken(if_false)));
  });
}

// (proxy tensors for the carried tensors in the subgraphs of a loop, positions for add_while())
PyObject* add_carried(PyObject*, PyObject* tensors) {
  return attempt([&] {
    if (!possible()) return PyRef::borrow(Py_None);
    std::vector<uint32_t> positions;
    const PyRef proxies = list_of(capture().subgraphs().add_carried(tensors_of(tensors), positions));
    const PyRef numbers = checked(PyList_New(0));
    for (const uint32_t position : positions)
      if (PyList_Append(numbers.get(), checked(PyLong_FromUnsignedLong(position)).get()) < 0) throw PythonError{};
    return checked(PyTuple_Pack(2, proxies.get(), numbers.get()));
  });
}

PyObject* add_while(PyObject*, PyObject* args) {
  return attempt([&] {
    PyObject *initial, *numbers, *condition, *body;
    if (!PyArg_ParseTuple(args, "OOOO", &initial, &numbers, &condition, &body)) throw PythonError{};
    std::vector<uint32_t> positions;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(numbers); ++i)
      positions.push_back(static_cast<uint32_t>(PyLong_AsUnsignedLong(PyList_GET_ITEM(numbers, i))));
    return list_of(
        capture().subgraphs().add_while(tensors_of(initial), std::move(positions), taken(condition), taken(body)));
  });
}

PyMethodDef control_flow_functions[] = {
    {"begin_subgraph", begin_subgraph, METH_O,
     "Begins to record a part of the program; False when that is not possible here."},
    {"end_subgraph", end_subgraph, METH_O, "The part, which gives these tensors; None when it cannot be recorded."},
    {"abandon_subgraph", abandon_subgraph, METH_O, "As if it had not begun."},
    {"explain_subgraph", explain_subgraph, METH_VARARGS, "The next break says why an operator was not captured."},
    {"add_cond", add_cond, METH_VARARGS, "Results of torch.cond(predicate, part, part); None when it does not fit."},
    {"add_carried", add_carried, METH_O, "What stands for carried tensors in the parts of a loop."},
    {"add_while", add_while, METH_VARARGS, "Results of torch.while_loop; None when it does not fit."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_control_flow_functions(PyObject* module) {
  if (PyModule_AddFunctions(module, control_flow_functions) < 0) throw PythonError{};
}

}  // namespace cresset::frontend
