// The user's filter for guards.
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"
#include "frontend/guards/state_guards.h"

namespace cresset::frontend {
namespace {

bool is_of_module(PyObject* dict) {
  PyObject* name = PyDict_GetItemString(dict, "__name__");
  return name != nullptr && PyDict_GetItemString(dict, "__builtins__") != nullptr;
}

// A list of cresset.GuardEntry, an entry per guard.
class Entries {
 public:
  Entries() : list_(checked(PyList_New(0))) {
    const PyRef module = import_module(python_names::kPackage);
    type_ = checked(PyObject_GetAttrString(module.get(), "GuardEntry"));
  }
  void add(const char* kind, PyObject* owner, PyObject* key, PyObject* value, bool is_global = false) {
    const auto or_none = [](PyObject* object) { return object != nullptr ? object : Py_None; };
    const PyRef entry = checked(PyObject_CallFunction(type_.get(), "sOOOO", kind, or_none(owner), or_none(key),
                                                      or_none(value), is_global ? Py_True : Py_False));
    if (PyList_Append(list_.get(), entry.get()) < 0) throw PythonError{};
  }
  // Returns the filter's answers in the order of the entries.
  std::vector<bool> ask(PyObject* chosen) const {
    const PyRef answers = checked(PyObject_CallOneArg(chosen, list_.get()));
    const PyRef items = checked(PySequence_Fast(answers.get(), "guard_filter must return a sequence of booleans"));
    if (PySequence_Fast_GET_SIZE(items.get()) != PyList_GET_SIZE(list_.get())) {
      PyErr_Format(PyExc_ValueError, "guard_filter returned %zd answers for %zd guards",
                   PySequence_Fast_GET_SIZE(items.get()), PyList_GET_SIZE(list_.get()));
      throw PythonError{};
    }
    std::vector<bool> out;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
      const int kept = PyObject_IsTrue(PySequence_Fast_GET_ITEM(items.get(), i));
      if (kept < 0) throw PythonError{};
      out.push_back(kept == 1);
    }
    return out;
  }

 private:
  PyRef list_, type_;
};

}  // namespace

void StateGuards::filter(PyObject* chosen) {
  Entries entries;
  for (const Dict& guard : dicts_) {
    const bool is_global = is_of_module(guard.dict.get());
    if (guard.whole) entries.add("items", guard.dict.get(), nullptr, nullptr, is_global);
    for (const auto& [key, value] : guard.items)
      if (!guard.whole) entries.add("item", guard.dict.get(), key.get(), value.get(), is_global);
  }
  for (const List& guard : lists_) entries.add("items", guard.list.get(), nullptr, guard.contents.get());
  for (const Set& guard : sets_) entries.add("items", guard.set.get(), nullptr, guard.contents.get());
  for (const Cell& guard : cells_) entries.add("cell", guard.cell.get(), nullptr, guard.value.get());
  for (const ClassGuards::Type& guard : classes_.types()) entries.add("type", guard.type.get(), nullptr, nullptr);
  for (const ClassGuards::Function& guard : classes_.functions())
    entries.add("function", guard.function.get(), nullptr, guard.code.get());
  for (const Member& guard : members_)
    entries.add("member", guard.owner.get(), guard.descriptor.get(), guard.value.get());
  const std::vector<bool> keep = entries.ask(chosen);
  size_t next = 0;
  std::erase_if(dicts_, [&](Dict& guard) {
    if (guard.whole) return !keep[next++];
    std::erase_if(guard.items, [&](const auto&) { return !keep[next++]; });
    return guard.items.empty();
  });
  const auto drop = [&](auto& guards) { std::erase_if(guards, [&](const auto&) { return !keep[next++]; }); };
  drop(lists_);
  drop(sets_);
  drop(cells_);
  const auto answers = [&](size_t count) {
    next += count;
    return std::vector<bool>(keep.begin() + static_cast<ptrdiff_t>(next - count),
                             keep.begin() + static_cast<ptrdiff_t>(next));
  };
  const std::vector<bool> types = answers(classes_.types().size());
  classes_.filter(types, answers(classes_.functions().size()));
  drop(members_);
  watch_ = DictWatch();
}

}  // namespace cresset::frontend
