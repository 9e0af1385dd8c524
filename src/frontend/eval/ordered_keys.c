// An OrderedDict's list of nodes is private to CPython, with the same layout from 3.5 to 3.13. A test at first use
// checks the layout, with an OrderedDict ordered differently from its table.
#include "frontend/eval/ordered_keys.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct Node {
  PyObject* key;
  Py_hash_t hash;
  struct Node *next, *previous;
} Node;

typedef struct {
  PyDictObject table;
  Node *first, *last;
  Node** by_place;
  Py_ssize_t places;
  void* resized;
  size_t state;
  PyObject* attributes;
  PyObject* weak_references;
} OrderedDict;

// NULL without an exception: the number of nodes differs from the number of entries in the table.
static PyObject* keys_of_nodes(PyObject* ordered) {
  const Py_ssize_t count = PyDict_GET_SIZE(ordered);
  PyObject* const out = PyList_New(count);
  if (out == NULL) return NULL;
  const Node* node = ((OrderedDict*)ordered)->first;
  for (Py_ssize_t i = 0; i < count; ++i, node = node->next) {
    if (node == NULL) return Py_DECREF(out), NULL;
    PyList_SET_ITEM(out, i, Py_NewRef(node->key));
  }
  if (node == NULL) return out;
  return Py_DECREF(out), NULL;
}

static PyObject* keys_by_iterator(PyObject* ordered) {
  PyObject* const iterator = PyODict_Type.tp_iter(ordered);
  if (iterator == NULL) return NULL;
  PyObject* const out = PySequence_List(iterator);
  Py_DECREF(iterator);
  return out;
}

// Moves the first of two strings behind the second: the nodes show the new order, the table does not.
static bool has_this_form(void) {
  if (PyODict_Type.tp_basicsize != (Py_ssize_t)sizeof(OrderedDict)) return false;
  if (PyODict_Type.tp_dictoffset != (Py_ssize_t)offsetof(OrderedDict, attributes)) return false;
  PyObject* const made = PyObject_CallNoArgs((PyObject*)&PyODict_Type);
  bool same = made != NULL && PyMapping_SetItemString(made, "a", Py_None) == 0 &&
              PyMapping_SetItemString(made, "b", Py_None) == 0;
  PyObject* const moved = same ? PyObject_CallMethod(made, "move_to_end", "s", "a") : NULL;
  PyObject* const wanted = moved != NULL ? keys_by_iterator(made) : NULL;
  PyObject* const found = wanted != NULL ? keys_of_nodes(made) : NULL;
  same = found != NULL && PyObject_RichCompareBool(wanted, found, Py_EQ) == 1;
  if (PyErr_Occurred()) PyErr_Clear();
  Py_XDECREF(found), Py_XDECREF(wanted), Py_XDECREF(moved), Py_XDECREF(made);
  return same;
}

PyObject* cresset_eval_ordered_keys(PyObject* ordered) {
  static int known = -1;
  if (known < 0) known = has_this_form();
  PyObject* const out = known ? keys_of_nodes(ordered) : NULL;
  return out != NULL || PyErr_Occurred() ? out : keys_by_iterator(ordered);
}
