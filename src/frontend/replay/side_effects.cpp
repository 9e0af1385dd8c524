#include "frontend/replay/side_effects.h"

#include <opcode.h>

#include <map>
#include <string_view>
#include <utility>

#include "frontend/cpython/dict_keys.h"
#include "frontend/cpython/object_repr.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/replay/replay.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {

// Applies to item and cell writes: a later write to the same place happens before any other reader sees the first
// value. An example is the parameters of a module, which `torch.func.functional_call` exchanges and restores. The order
// of dictionary keys is unaffected, because both writes target an existing key.
void drop_replaced(std::vector<LoggedWrite>& writes) {
  std::vector<bool> replaced(writes.size(), false);
  std::map<std::pair<PyObject*, std::string_view>, size_t> last;
  for (size_t i = 0; i < writes.size(); ++i) {
    const LoggedWrite& write = writes[i];
    const auto of_owner = last.lower_bound({write.owner.get(), {}});
    const bool sets = (write.kind == LoggedWrite::Kind::Item && write.had_key) || write.kind == LoggedWrite::Kind::Cell;
    if (sets && !write.values.empty()) {
      const std::string_view key = write.kind == LoggedWrite::Kind::Item ? utf8(write.key.get()) : "";
      const auto [at, first] = last.try_emplace({write.owner.get(), key}, i);
      if (!first) replaced[std::exchange(at->second, i)] = true;
    } else {  // it may read the earlier values
      auto end = of_owner;
      while (end != last.end() && end->first.first == write.owner.get()) ++end;
      last.erase(of_owner, end);
    }
  }
  size_t next = 0;
  std::erase_if(writes, [&](const LoggedWrite&) { return replaced[next++]; });
}

std::vector<ReplayedEffect> build_side_effects(ReconstructionBuilder& builder, const std::vector<LoggedWrite>& writes) {
  std::vector<ReplayedEffect> out;
  for (const LoggedWrite& write : writes) {
    ReplayedEffect effect{write.kind,    builder.build(write.owner.get(), "an object that is written"),
                          write.key,     {},
                          write.kwnames, write.operation};
    const std::string name =
        "a value that is written to a " + std::string(Py_TYPE(write.owner.get())->tp_name) +
        (write.key && PyUnicode_Check(write.key.get()) ? "[" + key_text(write.key.get()) + "]" : "");
    if (write.kind == LoggedWrite::Kind::Item)
      effect.key = without_symbols(write.key);  // the number was specialized at the lookup
    for (const PyRef& value : write.values) effect.values.push_back(builder.build(value.get(), name));
    out.push_back(std::move(effect));
  }
  return out;
}

namespace {

void check(int result) {
  if (result < 0) throw PythonError{};
}

PyRef in_place(int operation, PyObject* left, PyObject* right) {
  switch (operation) {
    case NB_INPLACE_ADD:
      return checked(PyNumber_InPlaceAdd(left, right));
    case NB_INPLACE_MULTIPLY:
      return checked(PyNumber_InPlaceMultiply(left, right));
    case NB_INPLACE_OR:
      return checked(PyNumber_InPlaceOr(left, right));
    case NB_INPLACE_AND:
      return checked(PyNumber_InPlaceAnd(left, right));
    case NB_INPLACE_SUBTRACT:
      return checked(PyNumber_InPlaceSubtract(left, right));
    case NB_INPLACE_XOR:
      return checked(PyNumber_InPlaceXor(left, right));
    default:
      PyErr_SetString(PyExc_SystemError, "cresset: an in-place operator that containers do not have");
      throw PythonError{};
  }
}

void repeat(const ReplayedEffect& effect, PyObject* owner, const std::vector<PyRef>& values) {
  PyObject* value = values.empty() ? nullptr : values[0].get();
  switch (effect.kind) {
    case LoggedWrite::Kind::Attribute:
      return set_attribute(owner, effect.key.get(), value);
    case LoggedWrite::Kind::Cell:
      return check(PyCell_Set(owner, value));
    case LoggedWrite::Kind::Item:
      if (PyDict_Check(owner)) return put_under(owner, effect.key.get(), value);
      return check(PyList_Type.tp_as_mapping->mp_ass_subscript(owner, effect.key.get(), value));
    case LoggedWrite::Kind::InPlace:
      in_place(effect.operation, owner, value);
      return;
    case LoggedWrite::Kind::Method: {
      std::vector<PyObject*> args{owner};
      for (const PyRef& v : values) args.push_back(v.get());
      const size_t named = effect.kwnames ? static_cast<size_t>(PyTuple_GET_SIZE(effect.kwnames.get())) : 0;
      checked(PyObject_Vectorcall(effect.key.get(), args.data(), args.size() - named, effect.kwnames.get()));
    }
  }
}

}  // namespace

// C types with their own attribute storage.
static bool has_own_way(PyObject* owner) {
  static auto* const thread_local_type = (PyTypeObject*)module_attribute("_thread", "_local");
  return PyModule_Check(owner) || Py_IS_TYPE(owner, thread_local_type);
}

PyRef held_attribute(PyObject* owner, PyObject* name) {
  if (PyType_Check(owner)) return PyRef::borrow(PyDict_GetItemWithError(type_dict((PyTypeObject*)owner), name));
  if (has_own_way(owner)) return PyRef::steal(PyObject_GetAttr(owner, name));
  PyObject* const found = _PyType_Lookup(Py_TYPE(owner), name);
  if (found != nullptr && (Py_IS_TYPE(found, &PyMemberDescr_Type) || Py_IS_TYPE(found, &PyGetSetDescr_Type)))
    return PyRef::steal(PyObject_GenericGetAttr(owner, name));
  PyObject* const dict = instance_dict(owner);
  return dict != nullptr ? PyRef::borrow(PyDict_GetItemWithError(dict, name)) : PyRef();
}

void set_attribute(PyObject* owner, PyObject* name, PyObject* value) {
  // A Python setter was evaluated during capture, so its writes are recorded as separate side effects.
  if (PyType_Check(owner)) return check(PyType_Type.tp_setattro(owner, name, value));
  check(has_own_way(owner) ? PyObject_SetAttr(owner, name, value) : PyObject_GenericSetAttr(owner, name, value));
}

Replay::Replay(const std::vector<ReplayedEffect>& side_effects, Ingredients& with)
    : side_effects_(side_effects), values_(side_effects.size()) {
  for (size_t i = 0; i < side_effects.size(); ++i) {
    owners_.push_back(make(side_effects[i].owner, with));
    for (const Reconstruction& reconstruction : side_effects[i].values)
      values_[i].push_back(make(reconstruction, with));
  }
}

void Replay::happen() const {
  for (size_t i = 0; i < side_effects_.size(); ++i) repeat(side_effects_[i], owners_[i].get(), values_[i]);
}

void replay(const std::vector<ReplayedEffect>& side_effects, Ingredients& with) { Replay(side_effects, with).happen(); }

bool is_of_state(const ReplayedEffect& effect) {
  const Reconstruction& owner = effect.owner;
  if (owner.kind == Reconstruction::Kind::Constant) return true;
  return owner.kind == Reconstruction::Kind::Argument &&
         PyLong_AsLong(PyTuple_GET_ITEM(owner.object.get(), 0)) == kStateRoot;
}

bool is_counter_of_torch(const LoggedWrite& write) {
  if (write.kind != LoggedWrite::Kind::Item || !PyDict_Check(write.owner.get())) return false;
  PyObject* const name = PyDict_GetItemString(write.owner.get(), "__name__");
  return name != nullptr && PyUnicode_Check(name) && std::string_view(utf8(name)).starts_with("torch.");
}

int visit(const ReplayedEffect& effect, visitproc visit, void* arg) {
  Py_VISIT(effect.key.get());
  if (const int r = frontend::visit(effect.owner, visit, arg)) return r;
  for (const Reconstruction& value : effect.values)
    if (const int r = frontend::visit(value, visit, arg)) return r;
  return 0;
}

static void replace_written(const LoggedWrite& write, PyObject* symbolic, PyObject* plain) {
  if (write.kind == LoggedWrite::Kind::Cell && PyCell_GET(write.owner.get()) == symbolic)
    PyCell_Set(write.owner.get(), plain);
  if (write.kind == LoggedWrite::Kind::Attribute) {
    const PyRef now = held_attribute(write.owner.get(), write.key.get());
    if (now.get() == symbolic) set_attribute(write.owner.get(), write.key.get(), plain);
  } else {
    without_symbols(write.owner);  // a container: in place
  }
  PyErr_Clear();
}

void take_symbols_out(const std::vector<LoggedWrite>& writes, const std::vector<PyRef>& unseen) {
  for (const LoggedWrite& write : writes)
    for (const PyRef& value : write.values) {
      const PyRef plain = without_symbols(value);
      if (plain.get() != value.get()) replace_written(write, value.get(), plain.get());
    }
  for (const LoggedWrite& write : writes)  // earlier symbolic contents of the written containers
    if (write.kind != LoggedWrite::Kind::Attribute && write.kind != LoggedWrite::Kind::Cell)
      without_symbols(write.owner);
  for (const PyRef& held : unseen) without_symbols(held);
  PyErr_Clear();
}

}  // namespace cresset::frontend
