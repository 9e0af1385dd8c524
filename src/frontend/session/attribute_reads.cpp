#include "frontend/session/attribute_reads.h"

#include <structmember.h>

#include <string_view>

#include "frontend/cpython/of_type.h"
#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/slots.h"
#include "frontend/guards/tensor_class.h"
#include "frontend/trace_rules/special_cases.h"
#include "frontend/trace_rules/transforms.h"
#include "frontend/values/symbolic_strings.h"
#include "frontend/values/wrapper_tensors.h"

namespace cresset::frontend {

void AttributeReads::read_instance(ObjectRecord& record, PyObject* name, PyObject* value) {
  PyObject* const owner = record.object;
  reads_.read_class(Py_TYPE(owner), name);
  PyObject* dict = instance_dict(owner);
  if (dict == nullptr) {
    if (Py_TYPE(owner)->tp_dictoffset == 0) return;
    const PyRef made = PyRef::steal(PyObject_GenericGetDict(owner, nullptr));
    if (!made) return PyErr_Clear();
    dict = made.get();  // the owner keeps it
  }
  if (!std::exchange(record.dictionary_held, true)) segment_.guards().classes().dictionary(owner, dict);
  if (record.names == nullptr || record.names->object != dict) record.names = &provenance_.record(dict);
  reads_.read_key(*record.names, name, value);
}

// Whether C code set the member at the creation of the object and never changes it.
static bool never_changes(PyObject* owner, PyObject* member) {
  return Py_IS_TYPE(member, &PyMemberDescr_Type) && !is_heap_type(Py_TYPE(owner)) &&
         (((PyMemberDescrObject*)member)->d_member->flags & READONLY) != 0;
}

// Whether an instance attribute may hide the class attribute, or its absence. Methods are excluded, since programs do
// not replace methods of a single tensor.
static bool may_be_hidden(PyObject* found) { return found == nullptr || Py_TYPE(found)->tp_descr_get == nullptr; }

// A quick test: instances of most classes are smaller.
static bool is_module_object(PyObject* object) {
  return Py_TYPE(object)->tp_basicsize >= PyModule_Type.tp_basicsize && is_of_module_type(object);
}

// Whether the function is the class's __getattribute__. It runs before every lookup, so the read does not depend on the
// instance's attributes yet.
static bool is_getattribute(PyObject* owner, PyObject* function) {
  static PyObject* const name = PyUnicode_InternFromString("__getattribute__");
  return PyFunction_Check(function) && _PyType_Lookup(Py_TYPE(owner), name) == function;
}

// Whether a __get__ written in Python may have created the value during the call. A guard would hold an object that
// nobody else has.
static bool is_made_by_python(Provenance& provenance, PyObject* found, PyObject* value) {
  return found != nullptr && value != nullptr && value != found && is_heap_type(Py_TYPE(found)) &&
         is_heap_type(Py_TYPE(value)) && provenance.is_new(value);
}

void AttributeReads::read_attribute(const CressetAttributeRead& read) {
  PyObject* owner = read.owner;
  if (is_symbolic_string(owner)) return;
  subgraphs_.touch(owner);
  ObjectRecord* record = provenance_.record_of(owner);
  if ((record == nullptr || !record->known) && is_module_object(owner))
    adopt_module(owner), record = provenance_.record_of(owner);
  if (record == nullptr || !record->known) {
    reads_.meet_unknown(owner);
    read_of_new(read);
    return read.stores != 0 ? read_stores(read) : void();
  }
  switch (read.place) {
    case CRESSET_AT_INSTANCE:
      if (is_tensor(owner) && provenance_.is_argument_tensor(owner)) return read_of_tensor(owner, read.name);
      return read_instance(*record, read.name, read.value);
    case CRESSET_AT_MODULE:
      return reads_.read_key(PyModule_GetDict(owner), read.name, read.value);
    case CRESSET_AT_SLOT:
      reads_.read_class(Py_TYPE(owner), read.name);
      reads_.learn(read.value);
      if (is_tensor(owner) || never_changes(owner, read.found) || provenance_.are_slots_known(owner)) return;
      if (reads_.first(owner, read.name)) segment_.guards().member(owner, read.found, read.value);
      return;
    case CRESSET_AT_GETSET:
      return reads_.read_computed(owner, read.name, read.found, read.value);
    case CRESSET_AT_TYPE:
    case CRESSET_AT_PYTHON:
    case CRESSET_AT_NOWHERE:
      reads_.learn(read.found);
      if (read.found != nullptr && is_getattribute(owner, read.found)) return;
      if (!is_tensor(owner))
        read_instance(*record, read.name, nullptr);
      else if (may_be_hidden(read.found))
        read_of_tensor(owner, read.name);
      if (read.found != nullptr && read.value == read.found) reads_.learn(read.value);
      return read.stores != 0 ? read_stores(read) : void();
    case CRESSET_AT_CLASS:
      if (read.found != nullptr && Py_TYPE(read.found) == &PyGetSetDescr_Type &&
          _PyType_Lookup((PyTypeObject*)owner, read.name) != read.found)
        return reads_.read_computed(owner, read.name, read.found, read.value);
      reads_.read_class((PyTypeObject*)owner, read.name);
      reads_.learn(read.found);
      if (!is_made_by_python(provenance_, read.found, read.value)) reads_.learn(read.value);
      return;
    case CRESSET_AT_SUPER:
      reads_.learn(read.found);
      return;
    case CRESSET_AT_FOREIGN:
      if (is_thread_local(owner) && reads_.first(owner, read.name))
        segment_.guards().member(owner, read.name, read.value);
      if (is_foreign(owner))
        segment_.refuse(BreakKind::UnguardedState, std::string("reads an attribute of a ") + Py_TYPE(owner)->tp_name);
      reads_.learn(read.value);
      return;
  }
}

// A __getattr__ which the evaluator resolved without a frame. Its reads are recorded as if it had run.
void AttributeReads::read_stores(const CressetAttributeRead& read) {
  if (ObjectRecord* const found = provenance_.record_of(read.found);
      found != nullptr && found->known && !std::exchange(found->function_held, true))
    segment_.guards().classes().function(read.found);
  PyObject* const dict = instance_dict(read.owner);
  if (dict == nullptr) return;  // the dictionary was removed in the meantime
  if (provenance_.existed(read.owner)) reads_.learn(dict);
  ObjectRecord& names = provenance_.record(dict);
  for (Py_ssize_t i = 0; i < read.stores; ++i) {
    PyObject* const key = PyTuple_GET_ITEM(cresset_eval_stores(), i);
    PyObject* const store = cresset_eval_item(dict, key);
    subgraphs_.touch(dict);
    names.known ? reads_.read_key(names, key, store) : reads_.meet_unknown(dict);
    if (store != nullptr) reads_.read_contains(store, read.name);
  }
}

// Reads from an object of the call, whose class may be older.
void AttributeReads::read_of_new(const CressetAttributeRead& read) {
  if (read.place == CRESSET_AT_SUPER) return read_super(read);
  if (read.place == CRESSET_AT_MODULE) return;
  reads_.learn_old_class(Py_TYPE(read.owner));
  auto* type = read.place == CRESSET_AT_CLASS ? (PyTypeObject*)read.owner : Py_TYPE(read.owner);
  if (!provenance_.existed((PyObject*)type)) {  // a class of the call: its base may be older
    type = cresset_attribute_holder(&read);
    if (type != nullptr) reads_.learn_old_class(type);
  }
  if (type == nullptr || !provenance_.existed((PyObject*)type)) return;
  reads_.read_class(type, read.name);
  reads_.learn(read.found);
}

// A super object is new at each use. The value found lies in a class of the object's MRO.
void AttributeReads::read_super(const CressetAttributeRead& read) {
  PyTypeObject* const type = cresset_super_class(read.owner);
  if (type == nullptr || !provenance_.existed((PyObject*)type)) return;
  reads_.read_class(type, read.name);
  reads_.learn(read.found);
}

bool AttributeReads::looks_into_opaque(const CressetAttributeRead& read) {
  const bool of_itself = read.place == CRESSET_AT_INSTANCE || read.place == CRESSET_AT_GETSET;
  if (of_itself && is_tensor(read.owner) && read.value != nullptr && !read.asked &&
      is_of_this_call(read.owner, read.name))
    return true;
  if (!provenance_.any_opaque() || !provenance_.is_opaque(read.owner) || read.place == CRESSET_AT_TYPE ||
      read.place == CRESSET_AT_PYTHON)
    return false;
  if (read.value != nullptr && !read.asked) return true;
  segment_.refuse(BreakKind::UnguardedState, std::string("asks for an attribute of a ") + Py_TYPE(read.owner)->tp_name);
  return false;
}

// getattr(owner, name), reported only with its result.
void AttributeReads::read_attribute(PyObject* owner, PyObject* name, PyObject* value) {
  if (!PyUnicode_Check(name)) return;
  subgraphs_.touch(owner);
  if (PyModule_Check(owner)) adopt_module(owner);
  if (PyType_Check(owner)) reads_.learn_old_class((PyTypeObject*)owner);
  if (!provenance_.existed(owner)) {
    reads_.meet_unknown(owner);
    reads_.learn_old_class(Py_TYPE(owner));
    reads_.read_class(Py_TYPE(owner), name);
    PyObject* found = provenance_.existed((PyObject*)Py_TYPE(owner)) ? _PyType_Lookup(Py_TYPE(owner), name) : nullptr;
    return reads_.learn(found), value == found ? reads_.learn(value) : void();
  }
  if (is_thread_local(owner) && reads_.first(owner, name)) segment_.guards().member(owner, name, value);
  if (PyModule_Check(owner)) {  // may be the default of getattr(), or hasattr()'s answer
    PyObject* const own = PyDict_GetItemWithError(PyModule_GetDict(owner), name);
    return reads_.read_key(PyModule_GetDict(owner), name, own), own != value ? reads_.learn(value) : void();
  }
  if (PyType_Check(owner)) {
    reads_.read_class((PyTypeObject*)owner, name);
    PyObject* const found = _PyType_Lookup((PyTypeObject*)owner, name);
    return is_made_by_python(provenance_, found, value) ? void() : reads_.learn(value);
  }
  PyObject* found = _PyType_Lookup(Py_TYPE(owner), name);
  if (found != nullptr && Py_TYPE(found) == &PyGetSetDescr_Type) return reads_.read_computed(owner, name, found, value);
  if (provenance_.is_argument_tensor(owner)) return may_be_hidden(found) ? read_of_tensor(owner, name) : void();
  if (found != nullptr && Py_TYPE(found) == &PyMemberDescr_Type) {
    const PyRef now = PyRef::steal(Py_TYPE(found)->tp_descr_get(found, owner, (PyObject*)Py_TYPE(owner)));
    if (!now) PyErr_Clear();
    reads_.read_class(Py_TYPE(owner), name);
    reads_.learn(now.get());
    if (!provenance_.are_slots_known(owner) && reads_.first(owner, name))
      segment_.guards().member(owner, found, now.get());
    return;
  }
  PyObject* dict = instance_dict(owner);
  PyObject* own = dict != nullptr ? PyDict_GetItemWithError(dict, name) : nullptr;
  read_instance(provenance_.record(owner), name, own);
  if (own != nullptr || found == nullptr) return;
  reads_.learn(found);
  if (value == found) reads_.learn(value);
}

// The statement `import name` returned `value`, a module or its package.
void AttributeReads::read_module(PyObject* modules, PyObject* name, PyObject* value) {
  reads_.learn(modules);
  if (value == nullptr) return PyDict_Contains(modules, name) == 0 ? reads_.read_key(modules, name, nullptr) : void();
  PyObject* const own_name =
      PyModule_Check(value) ? PyDict_GetItemString(PyModule_GetDict(value), "__name__") : nullptr;
  for (PyObject* key : {name, own_name}) {
    PyObject* module = key != nullptr ? PyDict_GetItemWithError(modules, key) : nullptr;
    if (module == nullptr) PyErr_Clear();
    if (module != nullptr) reads_.read_key(modules, key, module);
  }
  reads_.learn(value);
}

// Guards a module which was reached without a name or attribute lookup.
void AttributeReads::adopt_module(PyObject* module) {
  if (provenance_.existed(module)) return;
  PyObject* const modules = PyImport_GetModuleDict();
  PyObject* const name = PyDict_GetItemString(PyModule_GetDict(module), "__name__");
  if (name == nullptr || PyDict_GetItemWithError(modules, name) != module) return PyErr_Clear();
  read_module(modules, name, module);
}

// Reads the whole object, as copying and pickling do.
void AttributeReads::read_all(PyObject* object) {
  if (PyObject* dict = instance_dict(object)) {
    reads_.learn(dict);
    reads_.read_whole(dict);
  }
  PyObject* bases = Py_TYPE(object)->tp_mro;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bases); ++i) {
    auto* base = (PyTypeObject*)PyTuple_GET_ITEM(bases, i);
    PyObject *name, *slot;
    Py_ssize_t position = 0;
    while (is_heap_type(base) && PyDict_Next(type_dict(base), &position, &name, &slot)) {
      if (Py_TYPE(slot) != &PyMemberDescr_Type || provenance_.are_slots_known(object) || !reads_.first(object, name))
        continue;
      const PyRef value = PyRef::steal(Py_TYPE(slot)->tp_descr_get(slot, object, (PyObject*)Py_TYPE(object)));
      if (!value) PyErr_Clear();
      segment_.guards().member(object, slot, value.get());
      reads_.learn(value.get());
    }
  }
  reads_.read_whole(object);
}

// Attributes of a tensor argument differ at each call and are not guarded; absent attributes are guarded.
void AttributeReads::read_of_tensor(PyObject* tensor, PyObject* name) {
  if (!provenance_.is_argument_tensor(tensor)) return read_instance(provenance_.record(tensor), name, nullptr);
  PyObject* dict = instance_dict(tensor);
  if (dict != nullptr && PyDict_Contains(dict, name) == 1)
    return segment_.refuse(BreakKind::UnguardedState,
                           std::string("reads attribute ") + utf8(name) + " of a tensor among the arguments");
  segment_.guards().absent(tensor, name);
}

// The .data of a tensor that is not from the call: an alias of its memory, which no operator reports.
bool asks_for_data(const CressetAttributeRead& read) {
  return read.place == CRESSET_AT_GETSET && is_data_of_other(read.owner, read.name);
}

bool AttributeReads::is_of_this_call(PyObject* tensor, PyObject* name) const {
  if (!provenance_.is_argument_tensor(tensor) || segment_.guards().is_tied(tensor) ||
      !(is_plain_tensor(tensor) || has_plain_attributes(Py_TYPE(tensor))))
    return false;
  for (const char* const any : {"grad", "__dict__"})
    if (PyUnicode_CompareWithASCIIString(name, any) == 0) return true;
  PyObject* const dict = instance_dict(tensor);
  return dict != nullptr && PyDict_Contains(dict, name) == 1;
}

}  // namespace cresset::frontend
