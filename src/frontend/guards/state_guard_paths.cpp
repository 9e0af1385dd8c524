// Paths for messages: how the program reaches an item of its state, by the guards that lead to it. They are looked for
// when a guard has failed; captures pay nothing.
#include <algorithm>
#include <cctype>
#include <string_view>

#include "frontend/cpython/object_repr.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/guards/state_guards.h"

namespace cresset::frontend {
namespace {

std::string_view text_of_name(PyObject* key) {
  return key != nullptr && PyUnicode_Check(key) ? std::string_view(utf8(key, "")) : std::string_view();
}

// The item of the dictionary at this path. The dictionaries in which a module holds its parts are left out of the path,
// as the program leaves them out.
std::string item_at(const std::string& path, PyObject* key) {
  const std::string_view name = text_of_name(key);
  for (const std::string_view parts : {"._modules", "._parameters", "._buffers"}) {
    if (!path.ends_with(parts) || name.empty()) continue;
    const std::string module = path.substr(0, path.size() - parts.size());
    const bool is_number = std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    return module + (is_number ? "[" + std::string(name) + "]" : "." + std::string(name));
  }
  return path + "[" + value_text(key) + "]";
}

std::string member_at(const std::string& path, PyObject* descriptor) {
  if (PyUnicode_Check(descriptor)) return path + "." + utf8(descriptor);
  const PyRef name = PyRef::steal(PyObject_GetAttrString(descriptor, "__name__"));
  if (!name) PyErr_Clear();
  return name && PyUnicode_Check(name.get()) ? path + "." + utf8(name.get()) : std::string();
}

}  // namespace

// Calls `tell` with the container and the key of each guarded item, and with its value, until it returns true.
bool StateGuards::any_item(const std::function<bool(PyObject*, PyObject*, PyObject*)>& tell) const {
  for (const Dict& guard : dicts_)
    for (const auto& [key, value] : guard.items)
      if (value && tell(guard.dict.get(), key.get(), value.get())) return true;
  for (const List& guard : lists_)
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(guard.contents.get()); ++i) {
      const PyRef position = PyRef::steal(PyLong_FromSsize_t(i));
      if (position && tell(guard.list.get(), position.get(), PyTuple_GET_ITEM(guard.contents.get(), i))) return true;
    }
  for (const Cell& guard : cells_)
    if (guard.value && tell(guard.cell.get(), nullptr, guard.value.get())) return true;
  for (const Member& guard : members_)
    if (guard.value && tell(guard.owner.get(), guard.descriptor.get(), guard.value.get())) return true;
  return false;
}

// The path of an object; empty: not known. seen: the objects on the way, which state may refer to in circles.
std::string StateGuards::path_of(PyObject* object, std::unordered_set<PyObject*>& seen) const {
  if (const auto known = names_.find(object); known != names_.end()) return known->second;
  if (!seen.insert(object).second) return {};
  std::string found;
  any_item([&](PyObject* container, PyObject* key, PyObject* value) {
    return value == object && !(found = path_of_item(container, key, seen)).empty();
  });
  return found;
}

std::string StateGuards::path_of_item(PyObject* container, PyObject* key, std::unordered_set<PyObject*>& seen) const {
  if (PyList_Check(container)) {
    const std::string path = path_of(container, seen);
    return path.empty() ? path : item_at(path, key);
  }
  if (PyCell_Check(container)) return path_of(container, seen);
  if (!PyDict_Check(container)) {
    const std::string path = path_of(container, seen);
    return path.empty() ? path : member_at(path, key);
  }
  if (PyObject* const module = PyDict_GetItemString(container, "__name__");
      module != nullptr && PyUnicode_Check(module))
    return std::string(utf8(module)) + "." + std::string(text_of_name(key));
  std::string owner;  // of a dictionary with attributes
  for (const auto& [object, path] : names_)
    if (instance_dict(object) == container) owner = path;
  if (owner.empty())
    any_item([&](PyObject*, PyObject*, PyObject* value) {
      return instance_dict(value) == container && !(owner = path_of(value, seen)).empty();
    });
  if (!owner.empty()) return owner + "." + std::string(text_of_name(key));
  const std::string path = path_of(container, seen);
  return path.empty() ? path : item_at(path, key);
}

std::string StateGuards::text_of_item(PyObject* owner, PyObject* key) const {
  std::unordered_set<PyObject*> seen;
  if (key != nullptr)
    if (std::string path = path_of_item(owner, key, seen); !path.empty()) return path;
  return name_of(owner) + (key != nullptr ? "[" + value_text(key) + "]" : "");
}

std::string StateGuards::text_of_container(PyObject* container) const {
  std::unordered_set<PyObject*> seen;
  const std::string path = path_of(container, seen);
  return path.empty() ? name_of(container) : path;
}

// An attribute by which a class, torch's modules among them, keeps its own books: reported where nothing else differs.
bool is_private_item(PyObject* key) { return text_of_name(key).starts_with("_"); }

}  // namespace cresset::frontend
