#include "frontend/varying.h"

#include <algorithm>

#include "frontend/anatomy.h"

namespace cresset::frontend {
namespace {

void add(std::vector<std::string>& paths, const std::string& path) {
  if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
}

class Learner {
 public:
  Learner(Varying& varying, bool floats) : varying_(varying), floats_(floats) {}

  // A number that differs in an otherwise equal call, an object in the place of another.
  void compare(const ArgSpec& then, const ArgSpec& now) {
    if (then.kind == ArgSpec::Kind::Value && now.kind == ArgSpec::Kind::Value &&
        is_other_number(then.object.get(), now.object.get()))
      add(varying_.ints, then.path);
    if (then.kind == ArgSpec::Kind::Identity && now.kind == ArgSpec::Kind::Identity)
      objects(then.object.get(), now.object.get(), now.path, 0);
    for (size_t i = 0; i < then.children.size() && i < now.children.size(); ++i)
      compare(then.children[i], now.children[i]);
  }

 private:
  bool is_other_number(PyObject* a, PyObject* b) const {
    const bool ints = PyLong_CheckExact(a) && PyLong_CheckExact(b);
    if (!ints && !(floats_ && PyFloat_CheckExact(a) && PyFloat_CheckExact(b))) return false;
    return PyObject_RichCompareBool(a, b, Py_NE) == 1;
  }

  // Objects that both share, like a configuration, stay what they are by identity. Paths: as SpecBuilder's.
  void objects(PyObject* then, PyObject* now, const std::string& path, int depth) {
    if (then == now || Py_TYPE(then) != Py_TYPE(now) || depth > 6) return;
    if (PyTuple_Check(now) || PyList_CheckExact(now)) {
      const Py_ssize_t count = std::min(PySequence_Fast_GET_SIZE(then), PySequence_Fast_GET_SIZE(now));
      for (Py_ssize_t i = 0; i < count; ++i)
        objects(PySequence_Fast_GET_ITEM(then, i), PySequence_Fast_GET_ITEM(now, i),
                path + "[" + std::to_string(i) + "]", depth + 1);
    } else if (PyDict_CheckExact(now)) {
      PyObject *key, *value;
      Py_ssize_t position = 0;
      while (PyDict_Next(now, &position, &key, &value))
        if (PyObject* other = PyUnicode_CheckExact(key) ? PyDict_GetItem(then, key) : nullptr)
          objects(other, value, path + "[" + key_text(key) + "]", depth + 1);
    } else if (is_data_object(now)) {
      add(varying_.objects, path);
      const Anatomy a = take_apart(then), b = take_apart(now);
      if (a.parts.size() != b.parts.size()) return;
      for (size_t i = 0; i < b.parts.size(); ++i)
        objects(a.parts[i].get(), b.parts[i].get(), path + "." + part_name(b, i), depth + 1);
    }
  }

  Varying& varying_;
  bool floats_;
};

bool pins_one_of(const ArgSpec& spec, const std::vector<std::string>& paths, size_t first) {
  if (spec.kind == ArgSpec::Kind::Identity &&
      std::find(paths.begin() + static_cast<long>(first), paths.end(), spec.path) != paths.end())
    return true;
  return std::any_of(spec.children.begin(), spec.children.end(),
                     [&](const ArgSpec& c) { return pins_one_of(c, paths, first); });
}

}  // namespace

void learn(Varying& varying, Variants& variants, const ArgSpec& args, const ArgSpec& kwargs, bool floats) {
  Learner learner(varying, floats);
  const size_t known = varying.objects.size();
  std::vector<std::shared_ptr<Variant>> outdated;
  for (const std::shared_ptr<Variant>& v : variants) {
    learner.compare(v->args, args);
    learner.compare(v->kwargs, kwargs);
    if (v->facts.collect_varied(varying.state)) outdated.push_back(v);
  }
  // What they pin is gone: they would only keep it alive.
  std::erase_if(variants, [&](const std::shared_ptr<Variant>& v) {
    return std::find(outdated.begin(), outdated.end(), v) != outdated.end() ||
           pins_one_of(v->args, varying.objects, known) || pins_one_of(v->kwargs, varying.objects, known);
  });
}

void expect_numbers(Varying& varying, const Recipe& recipe, const std::string& path) {
  if (recipe.kind == Recipe::Kind::Number) add(varying.ints, path);
  if (recipe.kind != Recipe::Kind::Tuple && recipe.kind != Recipe::Kind::List) return;
  for (size_t i = 0; i < recipe.children.size(); ++i)
    expect_numbers(varying, recipe.children[i], path + "[" + std::to_string(i) + "]");
}

// As tolist() gives them, too; long lists are learned as anything else is.
static void expect_numbers_in(Varying& varying, PyObject* value, const std::string& path, int depth) {
  constexpr int kDeepest = 3;
  constexpr Py_ssize_t kLongest = 64;
  if (PyLong_CheckExact(value) || PyFloat_CheckExact(value)) return add(varying.ints, path);
  if (depth == kDeepest || !(PyList_CheckExact(value) || PyTuple_CheckExact(value))) return;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
  for (Py_ssize_t i = 0; count <= kLongest && i < count; ++i)
    expect_numbers_in(varying, PySequence_Fast_GET_ITEM(value, i), path + "[" + std::to_string(i) + "]", depth + 1);
}

void expect_result(Varying& varying, PyObject* kwargs) {
  if (PyObject* const value = PyDict_GetItemString(kwargs, "value")) expect_numbers_in(varying, value, "['value']", 0);
}

int Varying::visit(visitproc visit, void* arg) const {
  for (const StateFacts::Source& source : state) {
    Py_VISIT(source.container.get());
    Py_VISIT(source.key.get());
  }
  return 0;
}

}  // namespace cresset::frontend
