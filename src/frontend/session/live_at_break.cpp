#include "frontend/session/live_at_break.h"

#include "frontend/eval/hooks.h"
#include "frontend/replay/reconstruction.h"
#include "frontend/session/session.h"

namespace cresset::frontend {
namespace {

PyObject* name_of_slot(PyCodeObject* code, int slot) { return PyTuple_GET_ITEM(code->co_localsplusnames, slot); }

// Checks functions which are defined in this code and may be called at any time.
bool inner_code_changes(PyCodeObject* code, PyObject* name) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_consts); ++i) {
    PyObject* const constant = PyTuple_GET_ITEM(code->co_consts, i);
    if (!PyCode_Check(constant)) continue;
    auto* const inner = (PyCodeObject*)constant;
    for (int slot = inner->co_nlocalsplus - inner->co_nfreevars; slot < inner->co_nlocalsplus; ++slot)
      if (PyUnicode_Compare(name_of_slot(inner, slot), name) == 0 &&
          (cresset_eval_may_change_cell(inner, -1, slot) != 0 || inner_code_changes(inner, name)))
        return true;
  }
  return false;
}

bool code_changes(PyCodeObject* code, int last, int slot) {
  return cresset_eval_may_change_cell(code, last, slot) != 0 || inner_code_changes(code, name_of_slot(code, slot));
}

// Whether live frames or a surviving function may change a variable which inner functions share with outer functions.
bool may_be_changed(PyObject* cell, const ReconstructionBuilder& builder) {
  for (CressetActivation* a = cresset_eval_current(); a != nullptr; a = a->caller) {
    CressetFrameImage image;
    cresset_eval_image(a, CRESSET_AFTER, &image);
    for (int slot = 0; slot < image.slot_count; ++slot)
      if (image.slots[slot] == cell && code_changes(image.code, image.last, slot)) return true;
  }
  bool changes = false;
  builder.each_made([&](PyObject* object) {
    PyObject* const closure = PyFunction_Check(object) ? PyFunction_GET_CLOSURE(object) : nullptr;
    for (Py_ssize_t i = 0; closure != nullptr && i < PyTuple_GET_SIZE(closure); ++i) {
      auto* const code = (PyCodeObject*)PyFunction_GET_CODE(object);
      const int slot = code->co_nlocalsplus - code->co_nfreevars + static_cast<int>(i);
      changes |= PyTuple_GET_ITEM(closure, i) == cell && code_changes(code, -1, slot);
    }
  });
  return changes;
}

}  // namespace

bool lives_on(PyObject* object, const ReconstructionBuilder& builder, const Session& session, bool at_break) {
  if (!builder.makes(object) && (!at_break || session.provenance().argument_path(object) == nullptr)) return false;
  return !PyCell_Check(object) || !at_break || may_be_changed(object, builder);
}

}  // namespace cresset::frontend
