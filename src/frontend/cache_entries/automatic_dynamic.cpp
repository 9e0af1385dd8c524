#include "frontend/cache_entries/automatic_dynamic.h"

#include <c10/util/flat_hash_map.h>

#include <algorithm>
#include <map>
#include <set>

#include "frontend/cache_entries/growing_containers.h"
#include "frontend/cpython/object_repr.h"
#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/slots.h"
#include "frontend/feedback/thresholds.h"
#include "frontend/values/object_layout.h"

namespace cresset::frontend {
namespace {

void add(std::vector<std::string>& paths, const std::string& path) {
  if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
}

class Learner {
 public:
  Learner(AutomaticDynamic& automatic_dynamic, bool floats) : dynamic_(automatic_dynamic), floats_(floats) {}

  // Finds numbers that differ in an otherwise equal call, and replaced objects.
  void compare(const ArgSpec& then, const ArgSpec& now) {
    if (then.kind == ArgSpec::Kind::Value && now.kind == ArgSpec::Kind::Value) {
      if (is_other_number(then.object.get(), now.object.get())) add(dynamic_.ints, then.path);
      if (is_other_string(then.object.get(), now.object.get())) compare_strings(then.path);
      if (is_other_value(then.object.get(), now.object.get())) add(dynamic_.objects, then.path);
    }
    // A string that was expected to stay uninspected was inspected.
    if (PyObject* const text = now.kind == ArgSpec::Kind::String ? now.first.get() : now.object.get();
        then.kind == ArgSpec::Kind::String && then.object && text != nullptr &&
        is_other_string(then.object.get(), text))
      compare_strings(then.path);
    if (then.kind == ArgSpec::Kind::Int && then.first && now.kind == ArgSpec::Kind::Value &&
        is_other_number(then.first.get(), now.object.get()))
      add(dynamic_.ints, then.path);
    if (then.kind == ArgSpec::Kind::Identity && now.kind == ArgSpec::Kind::Identity)
      objects(then.object.get(), now.object.get(), now.path, 0);
    // It was expected to be the same at every call, but state may now hold another object.
    if (then.kind == ArgSpec::Kind::Identity && (is_container(now) || now.kind == ArgSpec::Kind::ObjectLayout) &&
        then.path.starts_with("frames"))
      add(dynamic_.objects, then.path);
    if (then.kind == ArgSpec::Kind::Opaque && then.object) add(dynamic_.looked_into, then.path);
    if (made_ == 0 && then.kind == ArgSpec::Kind::List && now.kind == ArgSpec::Kind::List) compare_lengths(then, now);
    if (!then.looked && !same_structure(then, now)) add(dynamic_.not_looked_into, then.path);
    const bool is_made = then.kind == ArgSpec::Kind::ObjectLayout && makes_parts(then.layout.kind);
    made_ += is_made;
    for (size_t i = 0; i < then.children.size() && i < now.children.size(); ++i)
      compare(then.children[i], now.children[i]);
    made_ -= is_made;
  }

 private:
  static bool is_container(const ArgSpec& spec) {
    return spec.kind == ArgSpec::Kind::List || spec.kind == ArgSpec::Kind::Dict;
  }
  static bool same_structure(const ArgSpec& then, const ArgSpec& now) {
    if (then.kind != now.kind || then.children.size() != now.children.size()) return false;
    if (then.kind == ArgSpec::Kind::Dict) return same_constant(then.object.get(), now.object.get());
    for (size_t i = 0; i < then.children.size(); ++i) {
      const bool numbers = is_number(then.children[i]) && is_number(now.children[i]);
      if (!numbers && !same_structure(then.children[i], now.children[i])) return false;
    }
    return then.kind != ArgSpec::Kind::ObjectLayout || same_form(then.layout, now.layout);
  }
  static bool is_number(const ArgSpec& spec) {
    return spec.kind == ArgSpec::Kind::Int || spec.kind == ArgSpec::Kind::Float || spec.kind == ArgSpec::Kind::Value;
  }
  bool is_other_number(PyObject* a, PyObject* b) const {
    const bool ints = (PyLong_CheckExact(a) && PyLong_CheckExact(b)) || (is_numpy_int64(a) && is_numpy_int64(b));
    if (!ints && !(floats_ && PyFloat_CheckExact(a) && PyFloat_CheckExact(b))) return false;
    return PyObject_RichCompareBool(a, b, Py_NE) == 1;
  }

  static bool is_other_value(PyObject* a, PyObject* b) {
    return Py_TYPE(a) == Py_TYPE(b) && can_be_opaque(b) && PyObject_RichCompareBool(a, b, Py_EQ) != 1;
  }

  // Strings from data differ at each call. Strings in frames may have few values, such as names of modes, so up to two
  // entries coexist per place. Most string arguments are names which the program inspects, so more entries are
  // permitted before inspecting such a string ends a segment.
  void compare_strings(const std::string& path) {
    if (path.starts_with("['value']")) return add(dynamic_.ints, path), add(dynamic_.texts, path);
    const int others = ++other_strings_[path];
    const bool of_frames = path.starts_with("frames");
    if (others >= (of_frames ? threshold::kStringsInFrames : threshold::kStrings)) add(dynamic_.ints, path);
    if (others >= (of_frames ? threshold::kStringsInFrames : threshold::kStringsUninspected)) add(dynamic_.texts, path);
  }
  // A list that grows at each call: entries for a few lengths coexist.
  void compare_lengths(const ArgSpec& then, const ArgSpec& now) {
    if (then.children.size() == now.children.size()) return;
    std::set<size_t>& lengths = other_lengths_[then.path];
    if (lengths.insert(then.children.size()).second && lengths.size() == threshold::kLengths)
      add(dynamic_.growing_lists, then.path);
  }
  bool is_other_string(PyObject* a, PyObject* b) const {
    return floats_ && PyUnicode_CheckExact(a) && PyUnicode_CheckExact(b) && PyUnicode_Compare(a, b) != 0;
  }

  // Objects which both calls share, such as a configuration, stay guarded by identity. Paths follow SpecBuilder.
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
    } else if (can_be_opaque(now)) {
      add(dynamic_.objects, path);
    } else if (is_data_object(now) && is_structure(now)) {
      add(dynamic_.objects, path);
      const ObjectLayout a = decompose(then), b = decompose(now);
      if (a.parts.size() == b.parts.size()) parts(a, b, path, depth);
    } else if (PyCell_Check(now)) {
      add(dynamic_.objects, path);
      if (PyCell_GET(then) != nullptr && PyCell_GET(now) != nullptr)
        objects(PyCell_GET(then), PyCell_GET(now), path + ".0", depth + 1);
    } else if (is_rarer_container(now)) {
      parts(decompose(then), decompose(now), path, depth);
    } else if (is_callable_by_parts(now)) {
      callables(then, now, path, depth);
    }
  }

  // Functions that the same code creates at each call (a lambda, a closure), bound methods, partial functions. Other
  // functions stay guarded by identity, with an entry for each.
  void callables(PyObject* then, PyObject* now, const std::string& path, int depth) {
    const ObjectLayout a = decompose(then), b = decompose(now);
    if (same_form(a, b)) parts(a, b, path, depth);
  }

  void parts(const ObjectLayout& a, const ObjectLayout& b, const std::string& path, int depth) {
    add(dynamic_.objects, path);
    for (size_t i = 0; i < std::min(a.parts.size(), b.parts.size()); ++i)
      objects(a.parts[i].get(), b.parts[i].get(), path + "." + part_name(b, i), depth + 1);
  }

  AutomaticDynamic& dynamic_;
  bool floats_;
  int made_ = 0;                              // nesting depth inside objects whose parts `decompose()` creates
  std::map<std::string, int> other_strings_;  // by path: number of entries for other strings
  std::map<std::string, std::set<size_t>> other_lengths_;  // by path: the lengths
};

bool is_number(PyObject* object) { return PyLong_CheckExact(object) || PyFloat_CheckExact(object); }

// A path in SpecBuilder's format, with a readable name.
std::string path_in_state(const AutomaticDynamic& automatic_dynamic, size_t i) {
  PyObject* const key = automatic_dynamic.state[i].key.get();
  const std::string name = key == nullptr         ? ""
                           : PyUnicode_Check(key) ? utf8(key)
                           : PyLong_Check(key)    ? key_text(key)
                           : is_place(key)        ? utf8(((PyDescrObject*)key)->d_name)
                                                  : "";
  return "state[" + std::to_string(i) + (name.empty() ? "]" : ": " + name + "]");
}

// The spec of an object in state, guarded by its parts.
ArgSpec spec_in_state(SpecBuilder& builder, const AutomaticDynamic& automatic_dynamic, PyObject* object,
                      const std::string& path) {
  std::vector<std::string> objects = automatic_dynamic.objects;
  add(objects, path);
  std::vector<std::string> opaque;
  for (const std::string& one : automatic_dynamic.not_looked_into)
    if (std::find(automatic_dynamic.looked_into.begin(), automatic_dynamic.looked_into.end(), one) ==
        automatic_dynamic.looked_into.end())
      opaque.push_back(one);
  builder.varying_objects = &objects;
  builder.not_looked_into = &opaque;
  ArgSpec spec = builder.build(object, path);
  builder.varying_objects = builder.not_looked_into = nullptr;
  return spec;
}

// Whether the spec requires a single length for a list in `paths` from `first` on.
bool specializes_length(const ArgSpec& spec, const std::vector<std::string>& paths, size_t first) {
  if (spec.kind == ArgSpec::Kind::List &&
      std::find(paths.begin() + static_cast<long>(first), paths.end(), spec.path) != paths.end())
    return true;
  return std::any_of(spec.children.begin(), spec.children.end(),
                     [&](const ArgSpec& c) { return specializes_length(c, paths, first); });
}

bool specializes_one_of(const ArgSpec& spec, const std::vector<std::string>& paths, size_t first) {
  if (spec.kind == ArgSpec::Kind::Identity &&
      std::find(paths.begin() + static_cast<long>(first), paths.end(), spec.path) != paths.end())
    return true;
  return std::any_of(spec.children.begin(), spec.children.end(),
                     [&](const ArgSpec& c) { return specializes_one_of(c, paths, first); });
}

}  // namespace

// Collects the tensors in a container, also as keys, in any order. Tensors of a single number are excluded as settings.
static void collect_tensors(PyObject* object, ska::flat_hash_set<PyObject*>& out, int depth = 0) {
  constexpr int kDeepest = 4;
  if (is_tensor(object) && tensor_of(object).dim() > 0) out.insert(object);
  if (depth == kDeepest || is_tensor(object) || !is_structure(object)) return;
  PyObject *key, *value;
  bool keyed = false;
  for (Py_ssize_t at = 0; PyDict_Check(object) && PyDict_Next(object, &at, &key, &value);)
    if (is_tensor(key)) out.insert(key), keyed = true;
  if (keyed) return;  // the values describe the keys
  for (const PyRef& part : parts_of_structure(object)) collect_tensors(part.get(), out, depth + 1);
}

// For example an optimizer's state after loading, or after adding a parameter group.
static bool is_about_same_tensors(PyObject* before, PyObject* after) {
  ska::flat_hash_set<PyObject*> then, now;
  collect_tensors(before, then);
  collect_tensors(after, now);
  const bool fewer = then.size() <= now.size();
  const auto& few = fewer ? then : now;
  const auto& many = fewer ? now : then;
  return !few.empty() && std::all_of(few.begin(), few.end(), [&](PyObject* t) { return many.count(t) != 0; });
}

// Whether the container is replaced occasionally and not at each call. The program is then guarded by the identity of
// the new container.
static bool stays_replaced(AutomaticDynamic& automatic_dynamic, const StateGuards::Source& source, bool served,
                           std::vector<StateGuards::Source>& counted) {
  const auto same = [&](const auto& known) { return known.first == source; };
  auto known = std::find_if(automatic_dynamic.replaced.begin(), automatic_dynamic.replaced.end(), same);
  if (known == automatic_dynamic.replaced.end()) known = automatic_dynamic.replaced.insert(known, {source, 0});
  if (std::find(counted.begin(), counted.end(), source) == counted.end()) {
    counted.push_back(source);
    known->second = served ? 0 : known->second + 1;
  }
  return known->second <= threshold::kReplaced;
}

static ArgSpec now_in_state(const AutomaticDynamic& automatic_dynamic, PyObject* object, const std::string& path) {
  SpecBuilder builder(nullptr, /*any_object=*/true);
  builder.every_container = true;
  return spec_in_state(builder, automatic_dynamic, object, path);
}

void take_state(StateGuards& guards, const AutomaticDynamic& automatic_dynamic, SpecBuilder& builder, bool numbers) {
  builder.every_int = false;
  builder.every_container = true;
  for (size_t i = 0; i < automatic_dynamic.state.size(); ++i) {
    const StateGuards::Source& source = automatic_dynamic.state[i];
    PyObject* const key = source.key.get();
    PyObject* const now = source.held();
    const bool has_place = key == nullptr || !is_place(key) || is_slot(key);
    if (now == nullptr) continue;
    ArgSpec spec;
    spec.path = path_in_state(automatic_dynamic, i);
    if (is_plain_tensor(now)) {
      spec.kind = ArgSpec::Kind::Tensor;
      spec.type = PyRef::borrow((PyObject*)Py_TYPE(now));
    } else if ((is_number(now) || is_numpy_int64(now)) && numbers && has_place) {
      spec.kind = PyFloat_CheckExact(now) ? ArgSpec::Kind::Float : ArgSpec::Kind::Int;
      if (is_numpy_int64(now)) spec.type = PyRef::borrow((PyObject*)Py_TYPE(now));
    } else if ((is_structure(now) || is_callable_by_parts(now)) && has_place) {
      builder.symbolic_ints = numbers ? &automatic_dynamic.ints : nullptr;
      spec = spec_in_state(builder, automatic_dynamic, now, spec.path);
    } else if ((can_be_opaque(now) || PyGen_CheckExact(now)) &&
               has_place) {  // a replaced array: passed on, any object of its type
      spec = spec_in_state(builder, automatic_dynamic, now, spec.path);  // frames may hold it too
    } else {
      continue;
    }
    guards.add_input(source, std::move(spec));
  }
}

void tell_what_varies(const AutomaticDynamic& automatic_dynamic, SpecBuilder& builder) {
  builder.varying_objects = &automatic_dynamic.objects;
  builder.uninspected_strings = &automatic_dynamic.texts;
  builder.growing_lists = &automatic_dynamic.growing_lists;
  builder.looked_into = &automatic_dynamic.looked_into;
}

int64_t learn(AutomaticDynamic& automatic_dynamic, CacheEntries& cache_entries, const ArgSpec& args,
              const ArgSpec& kwargs, bool floats) {
  Learner learner(automatic_dynamic, floats);
  const size_t known = automatic_dynamic.objects.size(), known_lists = automatic_dynamic.growing_lists.size();
  Contents contents;
  std::vector<std::shared_ptr<CacheEntry>> outdated;
  std::vector<StateGuards::Source> counted;
  for (const std::shared_ptr<CacheEntry>& v : cache_entries) {
    automatic_dynamic.decisions =
        automatic_dynamic.decisions || (v->program != nullptr && v->program->data_went_otherwise());
    automatic_dynamic.specializations =
        automatic_dynamic.specializations || (v->program != nullptr && v->program->specializations_went_otherwise());
    contents.count(v->guards);
    learner.compare(v->args, args);
    learner.compare(v->kwargs, kwargs);
    for (const StateGuards::Input& input : v->guards.inputs())
      if (PyObject* const object = input.source.held();
          object != nullptr && (is_structure(object) || is_callable_by_parts(object)))
        learner.compare(input.spec, now_in_state(automatic_dynamic, object, input.spec.path));
    const auto stays = [&](const StateGuards::Source& source, PyObject* before, PyObject* after) {
      return is_about_same_tensors(before, after) && stays_replaced(automatic_dynamic, source, v->has_served, counted);
    };
    if (v->guards.collect_varied(stays, [&](StateGuards::Source source, PyObject* before, PyObject* after) {
          const auto found = std::find(automatic_dynamic.state.begin(), automatic_dynamic.state.end(), source);
          const auto i = static_cast<size_t>(found - automatic_dynamic.state.begin());
          if (found == automatic_dynamic.state.end()) automatic_dynamic.state.push_back(std::move(source));
          if (!is_structure(after) && !is_callable_by_parts(after)) return;
          const std::string path = path_in_state(automatic_dynamic, i);
          learner.compare(now_in_state(automatic_dynamic, before, path), now_in_state(automatic_dynamic, after, path));
        }))
      outdated.push_back(v), Contents::drop(v->guards);
  }
  contents.note();
  // What they pin is gone: they would only keep it alive.
  const size_t erased = cache_entries.erase_if([&](const std::shared_ptr<CacheEntry>& v) {
    return std::find(outdated.begin(), outdated.end(), v) != outdated.end() ||
           specializes_length(v->args, automatic_dynamic.growing_lists, known_lists) ||
           specializes_length(v->kwargs, automatic_dynamic.growing_lists, known_lists) ||
           specializes_one_of(v->args, automatic_dynamic.objects, known) ||
           specializes_one_of(v->kwargs, automatic_dynamic.objects, known) ||
           std::any_of(v->guards.inputs().begin(), v->guards.inputs().end(), [&](const StateGuards::Input& input) {
             return specializes_one_of(input.spec, automatic_dynamic.objects, known);
           });
  });
  return static_cast<int64_t>(outdated.size() + (erased > outdated.size() ? 1 : 0));  // count the new feedback once
}

// texts: reconstructed strings by slot, with their `unlooked` flag.
static void expect_numbers(AutomaticDynamic& automatic_dynamic, const Reconstruction& reconstruction,
                           const std::string& path, std::map<uint32_t, bool>& texts) {
  const bool is_given_string =
      reconstruction.kind == Reconstruction::Kind::Argument && reconstruction.type.get() == (PyObject*)&PyUnicode_Type;
  const bool is_symbolic_string = reconstruction.kind == Reconstruction::Kind::String;
  if (is_symbolic_string && reconstruction.shared_slot >= 0)
    texts.emplace(static_cast<uint32_t>(reconstruction.shared_slot), reconstruction.unlooked);
  const auto same =
      reconstruction.kind == Reconstruction::Kind::Shared ? texts.find(reconstruction.position) : texts.end();
  if (reconstruction.kind == Reconstruction::Kind::Number || is_symbolic_string || is_given_string ||
      same != texts.end())
    add(automatic_dynamic.ints, path);
  if (reconstruction.unlooked || (same != texts.end() && same->second)) add(automatic_dynamic.texts, path);
  if (reconstruction.kind != Reconstruction::Kind::Tuple && reconstruction.kind != Reconstruction::Kind::List) return;
  for (size_t i = 0; i < reconstruction.children.size(); ++i)
    expect_numbers(automatic_dynamic, reconstruction.children[i], path + "[" + std::to_string(i) + "]", texts);
}

void expect_numbers(AutomaticDynamic& automatic_dynamic, const Reconstruction& reconstruction,
                    const std::string& path) {
  std::map<uint32_t, bool> texts;
  expect_numbers(automatic_dynamic, reconstruction, path, texts);
}

// Includes lists as from tolist(); long lists are learned like other values.
static void expect_numbers_in(AutomaticDynamic& automatic_dynamic, PyObject* value, const std::string& path,
                              int depth) {
  constexpr int kDeepest = 3;
  constexpr Py_ssize_t kLongest = 64;
  if (PyLong_CheckExact(value) || PyFloat_CheckExact(value)) return add(automatic_dynamic.ints, path);
  if (depth == kDeepest || !(PyList_CheckExact(value) || PyTuple_CheckExact(value))) return;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
  for (Py_ssize_t i = 0; count <= kLongest && i < count; ++i)
    expect_numbers_in(automatic_dynamic, PySequence_Fast_GET_ITEM(value, i), path + "[" + std::to_string(i) + "]",
                      depth + 1);
}

void expect_result(AutomaticDynamic& automatic_dynamic, PyObject* kwargs) {
  if (PyObject* const value = PyDict_GetItemString(kwargs, "value"))
    expect_numbers_in(automatic_dynamic, value, "['value']", 0);
}

bool is_other_code_each_time(const CacheEntries& resume_entries, PyObject* value) {
  if (value == nullptr || !PyFunction_Check(value) || resume_entries.size() < threshold::kCodesEachTime) return false;
  return std::all_of(resume_entries.begin(), resume_entries.end(), [&](const std::shared_ptr<CacheEntry>& v) {
    const ArgSpec* const then = v->kwargs.children.empty() ? nullptr : &v->kwargs.children[0];
    return then != nullptr && then->kind == ArgSpec::Kind::ObjectLayout &&
           then->layout.kind == ObjectLayout::Kind::Function &&
           PyTuple_GET_ITEM(then->layout.form.get(), 0) != PyFunction_GET_CODE(value);
  });
}

int AutomaticDynamic::visit(visitproc visit, void* arg) const {
  for (const auto& [source, _] : replaced) {
    Py_VISIT(source.container.get());
    Py_VISIT(source.key.get());
  }
  for (const StateGuards::Source& source : state) {
    Py_VISIT(source.container.get());
    Py_VISIT(source.key.get());
  }
  return 0;
}

}  // namespace cresset::frontend
