#include "frontend/values/exceptions.h"

#include <frameobject.h>
#include <structmember.h>
#include <torch/csrc/utils/pybind.h>

#include "frontend/cpython/py_objects.h"
#include "frontend/eval/hooks.h"

namespace cresset::frontend {
namespace {

thread_local PyObject* outer_handled = nullptr;  // of a capture; borrowed from its OuterHandled

PyRef none_for(PyObject* new_reference) {
  return new_reference != nullptr ? PyRef::steal(new_reference) : PyRef::borrow(Py_None);
}

PyRef handled_outside() {
  return outer_handled != nullptr ? PyRef::borrow(outer_handled) : none_for(PyErr_GetHandledException());
}

// A placeholder for the exception handled when the call began. It is a class, so reconstructions and guards treat it by
// identity.
PyObject* context_from_outside() {
  static PyObject* const type = PyObject_CallFunction((PyObject*)&PyType_Type, "s(){}", "from_outside");
  return type;
}

// The C base type, if Python subclasses add only a __dict__ and weak references; else nullptr.
PyTypeObject* keeper_of(PyTypeObject* type) {
  PyTypeObject* keeper = type;
  while (is_heap_type(keeper)) keeper = keeper->tp_base;
  const Py_ssize_t added = type->tp_basicsize - keeper->tp_basicsize;
  const bool only_weak_references =
      added == static_cast<Py_ssize_t>(sizeof(void*)) && type->tp_weaklistoffset == keeper->tp_basicsize;
  return added == 0 || only_weak_references ? keeper : nullptr;
}

// Collects the object fields of the C types between the keeper and BaseException. Returns false when a type stores
// other data.
bool fields_of(PyTypeObject* keeper, std::vector<PyMemberDef*>& out) {
  for (PyTypeObject* type = keeper; type != (PyTypeObject*)PyExc_BaseException; type = type->tp_base) {
    if (type == nullptr) return false;
    for (PyMemberDef* member = type->tp_members; member != nullptr && member->name != nullptr; ++member) {
      if ((member->flags & READONLY) != 0) continue;  // derived from the arguments
      if (member->type != T_OBJECT && member->type != T_OBJECT_EX) return false;
      out.push_back(member);
    }
  }
  return true;
}

PyRef context_of(PyObject* exception, PyObject* traceback) {
  PyRef context = none_for(PyException_GetContext(exception));
  const bool raised = traceback != Py_None;
  return raised && context.get() == handled_outside().get() ? PyRef::borrow(context_from_outside()) : context;
}

}  // namespace

OuterHandled::OuterHandled() : handled_(none_for(PyErr_GetHandledException())) {
  before_ = std::exchange(outer_handled, handled_.get());
}
OuterHandled::~OuterHandled() { outer_handled = before_; }

ObjectLayout of_exception(PyObject* object) {
  PyTypeObject* keeper = keeper_of(Py_TYPE(object));
  std::vector<PyMemberDef*> fields;
  if (keeper == nullptr || !fields_of(keeper, fields)) return {};
  const PyRef dict = checked(PyObject_GenericGetDict(object, nullptr)), names = checked(PySequence_Tuple(dict.get()));
  const auto* exception = (PyBaseExceptionObject*)object;
  ObjectLayout out{ObjectLayout::Kind::Exception, {}, {}};
  out.form = checked(
      PyTuple_Pack(3, (PyObject*)Py_TYPE(object), names.get(), exception->suppress_context ? Py_True : Py_False));
  const PyRef traceback = none_for(PyException_GetTraceback(object));
  out.parts = {PyRef::borrow(exception->args), none_for(PyException_GetCause(object)),
               context_of(object, traceback.get()), traceback};
  for (PyMemberDef* field : fields) {
    PyRef value = PyRef::steal(PyMember_GetOne((const char*)object, field));
    if (!value) PyErr_Clear(), value = PyRef::borrow(Py_None);
    out.parts.push_back(std::move(value));
  }
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict.get(), &position, &key, &value)) out.parts.push_back(PyRef::borrow(value));
  return out;
}

size_t first_attribute(const ObjectLayout& layout) {
  return layout.parts.size() - static_cast<size_t>(PyTuple_GET_SIZE(form_item(layout, 1)));
}

PlaceOfItem place_in_exception(PyObject* exception, const ObjectLayout& layout, size_t i) {
  static PyObject* const args = PyUnicode_InternFromString("args");
  if (i == 0) return {PyRef::borrow(exception), PyRef::borrow(args)};
  PyObject* const name = PyTuple_GET_ITEM(form_item(layout, 1), static_cast<Py_ssize_t>(i - first_attribute(layout)));
  return {checked(PyObject_GenericGetDict(exception, nullptr)), PyRef::borrow(name)};
}

PyRef make_exception(const ObjectLayout& layout) {
  auto* type = (PyTypeObject*)form_item(layout, 0);
  PyRef made = checked(keeper_of(type)->tp_new(type, layout.parts[0].get(), nullptr));
  fill_exception(made.get(), layout);
  return made;
}

void fill_exception(PyObject* made, const ObjectLayout& layout) {
  const auto or_nothing = [&](size_t i) {
    PyObject* part = layout.parts[i].get();
    return part != Py_None ? Py_NewRef(part) : nullptr;
  };
  auto* exception = (PyBaseExceptionObject*)made;
  Py_SETREF(exception->args, Py_NewRef(layout.parts[0].get()));
  PyException_SetCause(made, or_nothing(1));
  PyRef context = PyRef::steal(or_nothing(2));
  if (context.get() == context_from_outside()) context = handled_outside();
  PyException_SetContext(made, context.get() != Py_None ? context.release() : nullptr);
  exception->suppress_context = form_item(layout, 2) == Py_True;
  if (PyException_SetTraceback(made, layout.parts[3].get()) < 0) throw PythonError{};
  std::vector<PyMemberDef*> fields;
  fields_of(keeper_of(Py_TYPE(made)), fields);
  size_t part = 4;
  for (PyMemberDef* field : fields) {
    PyObject* const value = layout.parts[part++].get();
    const PyRef has = none_for(PyMember_GetOne((const char*)made, field));
    PyErr_Clear();
    if (has.get() == value) continue;  // an absent field reads as None and stays absent, which str(OSError) shows
    if (PyMember_SetOne((char*)made, field, value) < 0) throw PythonError{};
  }
  const PyRef dict = checked(PyObject_GenericGetDict(made, nullptr));
  PyDict_Clear(dict.get());
  for (Py_ssize_t i = 0; part < layout.parts.size(); ++i, ++part)
    if (PyDict_SetItem(dict.get(), PyTuple_GET_ITEM(form_item(layout, 1), i), layout.parts[part].get()) < 0)
      throw PythonError{};
}

ObjectLayout of_traceback(PyObject* object) {
  const PyRef entries = checked(PyList_New(0)), globals = checked(PyList_New(0));
  for (auto* at = (PyTracebackObject*)object; at != nullptr; at = at->tb_next) {
    const PyRef code = PyRef::steal((PyObject*)PyFrame_GetCode(at->tb_frame)),
                names = PyRef::steal(PyFrame_GetGlobals(at->tb_frame)),
                line = checked(PyObject_GetAttrString((PyObject*)at, "tb_lineno")),
                entry = checked(Py_BuildValue("OiO", code.get(), at->tb_lasti, line.get()));
    if (PyList_Append(entries.get(), entry.get()) < 0 || PyList_Append(globals.get(), names.get()) < 0)
      throw PythonError{};
  }
  const PyRef where = checked(PyList_AsTuple(entries.get())), of = checked(PyList_AsTuple(globals.get()));
  return {ObjectLayout::Kind::Traceback, checked(PyTuple_Pack(2, where.get(), of.get())), {}};
}

PyRef make_traceback(const ObjectLayout& layout) {
  PyObject *entries = form_item(layout, 0), *globals = form_item(layout, 1);
  PyRef made = PyRef::borrow(Py_None);
  for (Py_ssize_t i = PyTuple_GET_SIZE(entries); i-- > 0;) {
    PyObject* entry = PyTuple_GET_ITEM(entries, i);
    auto* code = (PyCodeObject*)PyTuple_GET_ITEM(entry, 0);
    const PyRef frame =
        checked((PyObject*)PyFrame_New(PyThreadState_Get(), code, PyTuple_GET_ITEM(globals, i), nullptr));
    made = checked(PyObject_CallFunctionObjArgs((PyObject*)&PyTraceBack_Type, made.get(), frame.get(),
                                                PyTuple_GET_ITEM(entry, 1), PyTuple_GET_ITEM(entry, 2), nullptr));
  }
  return made;
}

namespace {

struct FrameVisitor {
  const std::function<void(PyObject*)>& tell;
  int depth = 0;

  static int visit(PyObject* object, void* self) {
    auto& visitor = *static_cast<FrameVisitor*>(self);
    visitor.tell(object);
    const bool container =
        PyTuple_Check(object) || PyList_Check(object) || PyDict_Check(object) || PyCell_Check(object);
    if (!container || visitor.depth > 3) return 0;
    ++visitor.depth;
    Py_TYPE(object)->tp_traverse(object, &FrameVisitor::visit, self);
    --visitor.depth;
    return 0;
  }
};

}  // namespace

void visit_frames_of(PyObject* traceback, const std::function<void(PyObject*)>& visit) {
  FrameVisitor visitor{visit};
  for (auto* at = (PyTracebackObject*)traceback; at != nullptr; at = at->tb_next)
    Py_TYPE(at->tb_frame)->tp_traverse((PyObject*)at->tb_frame, &FrameVisitor::visit, &visitor);
}

bool may_be_caught() {
  const pybind11::gil_scoped_acquire gil;  // torch's bindings release it around operators
  for (const CressetActivation* a = cresset_eval_current(); a != nullptr; a = a->caller)
    if (cresset_may_catch(a->code, a->instruction) != 0) return true;
  return false;
}

}  // namespace cresset::frontend
