// warnings.warn() in captured code.
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"
#include "frontend/session/session.h"
#include "frontend/trace_rules/special_cases.h"

namespace cresset::frontend {

static PyObject* warnings_module() {
  static PyObject* const module = import_module("warnings").release();
  return module;
}

// Whether the call itself receives warnings: in the list of catch_warnings(record=True), or by a function of its own.
static bool takes_warnings(Session& session) {
  const auto is_own = [&](const char* name) {
    PyObject* shower = PyDict_GetItemString(PyModule_GetDict(warnings_module()), name);
    if (shower != nullptr && is_c_function(shower)) shower = PyCFunction_GET_SELF(shower);
    return shower != nullptr && ((session.provenance().knows_ages() && session.provenance().is_new(shower)) ||
                                 session.provenance().argument_path(shower) != nullptr);
  };
  return is_own("_showwarnmsg_impl") || is_own("showwarning");
}

// The number of trailing callers whose frames are not evaluated. Positions beyond the last caller are None.
static Py_ssize_t callers_outside(const CressetActivation& activation, PyObject* callers) {
  Py_ssize_t inside = PyTuple_GET_SIZE(callers);
  while (inside != 0 && !is_evaluated(activation, PyTuple_GET_ITEM(callers, inside - 1))) --inside;
  return PyTuple_GET_SIZE(callers) - inside;
}

// warnings.warn() runs unchanged, without evaluation. Later calls warn at the same code position, subject to the
// filters at which time. If the position is a caller of the compiled function, they warn at their own caller. If the
// call itself receives the warning, the segment ends and the warning is issued by its position.
CressetAction Session::log_warning(CressetActivation* activation, const CressetCall& call, PyObject** result) {
  operation_.in_progress().end();
  const PyRef helpers = import_module(python_names::kSubstitutes);
  const PyRef place = checked(PyObject_GetAttrString(helpers.get(), "place_of_warning"));
  const PyRef found =
      PyRef::steal(PyObject_Vectorcall(place.get(), call.args, static_cast<size_t>(call.nargs), call.kwnames));
  if (!found) return PyErr_Clear(), CRESSET_NATIVE;                               // the call itself raises the error
  constexpr Py_ssize_t kMessage = 1, kCategory = 2, kCallers = 6, kPrefixes = 7;  // after the registry
  const Py_ssize_t outside = callers_outside(*activation, PyTuple_GET_ITEM(found.get(), kCallers));
  const auto part = [&](Py_ssize_t i) { return PyRef::borrow(PyTuple_GET_ITEM(found.get(), i)); };
  const bool is_given = takes_warnings(*this);
  if (outside != 0 && is_given) return call_whole(activation, call);
  const PyRef owner = outside != 0 ? PyRef::borrow(warnings_module()) : part(0);
  reads_.learn(owner.get());
  if (is_given) {
    static PyObject* const of_place = module_attribute(python_names::kPolyfills, "warn_of_place");
    const bridge::Capture::StepAside outside_of_it;
    const PyRef args = checked(PyTuple_GetSlice(found.get(), 0, kCallers));
    return *result = provenance_.keep(checked(PyObject_Call(of_place, args.get(), nullptr))), CRESSET_INSTEAD;
  }
  const PyRef again = checked(PyObject_GetAttrString(helpers.get(), outside != 0 ? "warn_caller" : "warn_again"));
  LoggedWrite write{LoggedWrite::Kind::Method, owner, again, {}, {}, 0};
  if (outside != 0)
    write.values = {part(kMessage), part(kCategory), checked(PyLong_FromSsize_t(outside)), part(kPrefixes)};
  else
    for (Py_ssize_t i = kMessage; i < kCallers; ++i) write.values.push_back(part(i));
  writes_.add_write(std::move(write));
  return CRESSET_NATIVE;
}

}  // namespace cresset::frontend
