// Queries and changes of torch's settings by the program.
#include <string_view>

#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"
#include "frontend/guards/torch_settings.h"
#include "frontend/session/session.h"
#include "frontend/trace_rules/special_cases.h"

namespace cresset::frontend {

namespace {

bool is_plain(PyObject* value) {
  return PyBool_Check(value) || PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyUnicode_CheckExact(value);
}

// Decorators in reprlib and dataclasses use the thread's identity against recursion of `__repr__`. Any identity is
// acceptable.
bool is_of_repr(const CressetActivation* activation) {
  if (activation == nullptr) return false;
  const std::string_view name = utf8(activation->code->co_qualname, "");
  return name == "recursive_repr.<locals>.decorating_function.<locals>.wrapper" ||
         name == "_recursive_repr.<locals>.wrapper";
}

}  // namespace

// After the segment has changed a setting, queries return the segment's own value and need no guard.
CressetAction Session::use_setting(const CressetCall& call, PyObject** result) {
  static PyObject* const any = import_module("torch._C").release();
  operation_.in_progress().end();
  const bool is_asked = setting_of(call.callable) == Setting::Asked;
  if (!is_asked && subgraphs_.is_inside()) subgraphs_.fail_subgraph("it changes a setting of torch's");
  PyRef value = with_plain_numbers(call);
  if (!value && PyErr_Occurred() == nullptr)
    value = PyRef::steal(PyObject_Vectorcall(call.callable, call.args, static_cast<size_t>(call.nargs), nullptr));
  if (!value) return CRESSET_FAIL;
  if (!is_asked) {
    static PyObject* const again = module_attribute(python_names::kGraphBreaks, "set_again");
    LoggedWrite write{LoggedWrite::Kind::Method, PyRef::borrow(call.callable), PyRef::borrow(again), {}, {}, 0};
    for (Py_ssize_t i = 0; i < call.nargs; ++i) write.values.push_back(PyRef::borrow(call.args[i]));
    reads_.learn(call.callable);
    writes_.add_write(std::move(write));
    reads_.first(any, Py_None);
  } else if (!reads_.has_read(any, Py_None) && is_plain(value.get()) && !is_of_repr(cresset_eval_current())) {
    const PyRef args = checked(PyTuple_New(call.nargs));
    for (Py_ssize_t i = 0; i < call.nargs; ++i) PyTuple_SET_ITEM(args.get(), i, Py_NewRef(call.args[i]));
    if (reads_.first(call.callable, args.get())) segment_.guards().member(call.callable, args.get(), value.get());
  }
  return *result = value.release(), CRESSET_RESULT;
}

}  // namespace cresset::frontend
