// Direct access to entries of dictionaries.
#include "frontend/eval/helpers.h"

int cresset_eval_dict_entry(PyObject* dict, Py_ssize_t index, PyObject*** key, PyObject*** value) {
  PyDictObject* const table = (PyDictObject*)dict;
  PyDictKeysObject* const keys = table->ma_keys;
  if (table->ma_values != NULL || DK_IS_UNICODE(keys)) return -1;
#ifdef DICT_WATCHER_MASK
  if ((table->ma_version_tag & DICT_WATCHER_MASK) != 0) return -1;
#endif
  if (index >= keys->dk_nentries) return 0;
  PyDictKeyEntry* const entry = &DK_ENTRIES(keys)[index];
  *key = &entry->me_key;
  *value = &entry->me_value;
  return 1;
}

int cresset_eval_dict_changed(PyObject* dict) {
  PyObject* const other = PyDict_New();  // its version is unique
  if (other == NULL) return -1;
  ((PyDictObject*)dict)->ma_version_tag = ((PyDictObject*)other)->ma_version_tag;
  Py_DECREF(other);
  return 0;
}
