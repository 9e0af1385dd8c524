// State guards: guards on Python state which a program read from objects older than the call.
//
// Every guard is rooted at an object which is the same at every call: a function's globals, or an object which an
// earlier guard ties by identity. Guards are therefore flat, and a check walks no paths. A container has a single
// record: an unchanged dictionary costs a single compare (dict_versions.h), for any number of read keys. The check and
// the explanation of a failure read the same data. No check runs the user's Python code, and no check can raise.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "frontend/cpython/constant_values.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/py_ref.h"
#include "frontend/guards/arg_spec.h"
#include "frontend/guards/class_guards.h"
#include "frontend/guards/dict_versions.h"

namespace cresset::frontend {

class StateGuards {
 public:
  // The place of a tensor, number, container or object with data which may differ at each call.
  struct Source : PlaceOfItem {
    bool operator==(const Source& other) const {
      if (container.get() != other.container.get()) return false;
      return key.get() == other.key.get() || (key && other.key && same_constant(key.get(), other.key.get()));
    }
    PyObject* held() const { return is_length() ? length() : held_by(*this); }  // borrowed, or nullptr
    // The source of a container's length: the key is the builtin len().
    bool is_length() const { return key && key.get() == len(); }
    static PyObject* len();
    PyObject* length() const;
    mutable PyRef length_ = {};  // the last result
  };
  // The value at a source is an input of the program. It is guarded by structure, like an argument, and its identity is
  // not guarded.
  struct Input {
    Source source;
    ArgSpec spec;
    PyTypeObject* type;
    PyRef given = {};       // during capture: the value in the place, with symbols
    Py_ssize_t length = 0;  // during capture: the initial length
  };
  void add_input(Source source, ArgSpec spec);
  const std::vector<Input>& inputs() const { return inputs_; }
  // Guards the values of floats which a decision inspected (bits, from `next` on).
  void specialize_floats(const CallLeaves& leaves, uint64_t specialized, size_t& next);
  void end_capture();  // without keeping its data
  // During capture: whether state holds this tensor of the call's arguments, which must be the same tensor at later
  // calls.
  bool is_tied(PyObject* tensor) const;
  // During capture: a tensor argument lacks this attribute. Tensors of later calls must lack the attribute too.
  void absent(PyObject* tensor, PyObject* name);
  // During capture: the program asked for the identity of a tensor or container argument. At later calls it must be the
  // same object. Alternatively (`stranger`), it must not be a dictionary's key or held by another container.
  void same_object(PyObject* object) { tie(object); }
  // How the container refers to objects: directly, by weak reference, or by the result of id().
  enum class HeldBy : uint8_t { Identity, Reference, Address };
  void stranger(PyObject* object, PyObject* container, HeldBy by);
  // The program compared the identities of two arguments: arguments which were the same object must stay so, and
  // distinct arguments must stay distinct.
  void all_different() { places_ = first_places_; }
  // Receives the gathered tensors and containers of the call. An argument which state holds must be the same object at
  // later calls. The other arguments must not be objects which guards mention.
  void know(const CallLeaves& leaves);
  // Appends the inputs. Returns false when an input is not a tensor or has another type, or when the relation between
  // arguments and state has changed.
  bool gather(CallLeaves& leaves, std::string* why) const;
  // Stores the symbols in their places. held: the values which gather() found there.
  void place(const std::vector<PyRef>& held, Symbols& symbols);
  // Reports the sources whose object differs from the recorded object (old, new); returns whether any differs. stays:
  // whether the new container will stay in place, as the old container did.
  using Varied = std::function<void(Source, PyObject*, PyObject*)>;
  using Stays = std::function<bool(const Source&, PyObject*, PyObject*)>;
  bool collect_varied(const Stays& stays, const Varied& tell) const;
  // Reports lists, deques and dictionaries with number keys whose contents have changed, and whether the length has
  // changed.
  void each_growing(const std::function<void(PyObject*, bool)>& tell) const;

  // Records a dictionary item; called once per key. value nullptr: the key is missing. Returns false when no record is
  // needed. place: position of the dictionary's record; 0 before its creation.
  bool dict_item(uint32_t& place, PyObject* dict, PyObject* key, PyObject* value);
  // contents: the contents at the start of the call, if the dictionary was written since; else the dictionary.
  void whole_dict(uint32_t& place, PyObject* dict, PyObject* contents);
  using Item = std::pair<PyRef, PyRef>;
  using Items = std::vector<Item>;
  // The recorded items of a dictionary by its place; none for place 0.
  std::span<const Item> known_of(uint32_t place) const {
    return place != 0 ? std::span<const Item>(dicts_[place - 1].items) : std::span<const Item>();
  }
  bool has_item(uint32_t place, PyObject* key) const {
    for (const auto& [known, _] : known_of(place))
      if (known.get() == key) return true;
    return false;
  }
  void whole_list(PyObject* list, PyObject* contents);
  void whole_set(PyObject* set, PyObject* contents);
  // Guards the initial length of a list, deque, dictionary or set without a guard on its items. `length_input` returns
  // the input which represents the length, or nullptr.
  void length(PyObject* container, Py_ssize_t count);
  const Input* length_input(PyObject* container) const;
  void cell(PyObject* cell, PyObject* value);
  // Guards a C structure member or a __slots__ entry of an instance. descriptor None: the value of a context variable
  // (the owner), or the target address of a weak reference. A str: an attribute looked up by the class's own C code. A
  // tuple: the arguments of a call of the owner, whose result is guarded.
  void member(PyObject* owner, PyObject* descriptor, PyObject* value);

  ClassGuards& classes() { return classes_; }

  // Names for messages: the place where an object was found.
  void name(PyObject* object, std::string path) { names_.emplace(object, std::move(path)); }
  std::string name_of(PyObject* object) const;

  // Keeps the guards for which `chosen` returns True and drops the others. `chosen` is called once with all guards (a
  // list of cresset.GuardEntry) and returns a list of booleans. Throws PythonError.
  void filter(PyObject* chosen);

  bool holds(std::string* why);
  size_t size() const;
  std::vector<std::string> texts() const;
  int visit(visitproc visit, void* arg) const;

 private:
  struct Dict {
    PyRef dict;
    bool whole = false;  // exactly these items, in this order
    Items items;
  };
  struct List {
    PyRef list, contents;  // contents: a tuple
  };
  struct Set {
    PyRef set, contents;
    size_t kinds;  // number types among the items: {1} is equal to {True}
    bool asks_program;
  };
  struct Length {
    PyRef container;
    Py_ssize_t count;
  };
  struct Cell {
    PyRef cell, value;
  };
  struct Member {
    PyRef owner, descriptor, value;
    PyObject* const* place = nullptr;  // of a slot, in the owner
  };
  Dict& dict(uint32_t& place, PyObject* dict) {
    if (place == 0) dicts_.push_back({PyRef::borrow(dict), false, {}}), place = static_cast<uint32_t>(dicts_.size());
    return dicts_[place - 1];
  }
  bool dicts_hold(std::string* why);
  bool dict_same(const Dict& guard, std::string* why) const;
  void prefer_public(const std::vector<uint32_t>& changed, std::string* why) const;
  bool miss(std::string* why, PyObject* owner, PyObject* key, PyObject* expected, PyObject* got) const;
  // The place of an item for messages, with the path by which the program reaches it (state_guard_paths.cpp).
  std::string text_of_item(PyObject* owner, PyObject* key) const;
  std::string text_of_container(PyObject* container) const;
  bool any_item(const std::function<bool(PyObject*, PyObject*, PyObject*)>& tell) const;
  std::string path_of(PyObject* object, std::unordered_set<PyObject*>& seen) const;
  std::string path_of_item(PyObject* container, PyObject* key, std::unordered_set<PyObject*>& seen) const;

  bool is_input(PyObject* container, PyObject* key) const {
    return !inputs_.empty() && is_one_of_inputs(container, key);
  }
  bool is_one_of_inputs(PyObject* container, PyObject* key) const;

  // A guard ties the value to this very object.
  void tie(PyObject* value) {
    const PyTypeObject* const type = value != nullptr ? Py_TYPE(value) : &PyBool_Type;
    if (type == &PyUnicode_Type || type == &PyBool_Type || type == &PyLong_Type) return;
    if (!leaf_of_.empty() || !container_of_.empty()) tie_object(value);
  }
  void tie_object(PyObject* value);
  bool containers_fit(const CallLeaves& leaves) const;
  bool lacks_absent(const CallLeaves& leaves, std::string* why) const;
  bool strangers_fit(const CallLeaves& leaves) const;

  std::vector<Input> inputs_;
  ska::flat_hash_map<PyObject*, size_t> leaf_of_;       // during capture: tensor -> position among the arguments
  ska::flat_hash_map<PyObject*, size_t> container_of_;  // during capture: container -> position
  std::vector<PyRef> tied_containers_;                  // by position; empty: not held by state
  ska::flat_hash_set<PyObject*> identities_;            // objects which guards tie, after the last addition
  bool ended_ = false;
  std::vector<std::pair<size_t, PyRef>> tied_leaves_;
  std::vector<std::pair<size_t, PyRef>> absent_;  // attributes which tensor arguments must lack
  struct Stranger {
    bool is_tensor;  // else a container
    HeldBy by;
    size_t position;
    PyRef container;
  };
  std::vector<uint32_t> places_;        // the first place of each argument; empty: identities were not compared
  std::vector<uint32_t> first_places_;  // during capture
  std::vector<Stranger> strangers_;
  std::vector<Dict> dicts_;
  DictWatch watch_;  // of dicts_: at most calls, the only check
  std::vector<List> lists_;
  std::vector<Set> sets_;
  std::vector<Length> lengths_;
  std::vector<Cell> cells_;
  ClassGuards classes_;
  std::vector<Member> members_;
  std::unordered_map<PyObject*, std::string> names_;
};

bool is_private_item(PyObject* key);

}  // namespace cresset::frontend
