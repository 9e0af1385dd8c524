// Facts about Python state that a program was compiled under: what it read of objects that existed before the call.
//
// Every fact is rooted at an object that cannot be another one at a later call (a function's globals, an object that an
// earlier fact ties by identity): facts are flat, and a check walks no paths. One record a container: an unchanged
// dictionary costs one compare (unchanged.h), however many keys were read. The check and the explanation
// of a failure read the same data. No check runs Python code of the user's, and none can raise.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/arg_spec.h"
#include "frontend/class_facts.h"
#include "frontend/py_objects.h"
#include "frontend/py_ref.h"
#include "frontend/unchanged.h"

namespace cresset::frontend {

// Whether `got` serves where `expected` was seen: plain immutable values by type and value, all else by identity.
bool same_constant(PyObject* expected, PyObject* got);
// int, float, str, bytes, bool, None, ..., and tuples of such.
bool is_constant_of_rare_type(PyObject* object);
inline bool is_constant_value(PyObject* object) {
  const PyTypeObject* const type = Py_TYPE(object);
  if (type == &PyUnicode_Type || type == &PyLong_Type || type == &PyBool_Type || object == Py_None) return true;
  if (is_heap_type(type) || type == &PyFunction_Type || type == &PyDict_Type || type == &PyODict_Type ||
      type == &PyCFunction_Type)
    return false;
  return is_constant_of_rare_type(object);
}

class StateFacts {
 public:
  // Where a tensor, a number, a container or an object with data is found that may be another one at each call.
  struct Source : PlaceOfItem {
    bool operator==(const Source& other) const {
      if (container.get() != other.container.get()) return false;
      return key.get() == other.key.get() || (key && other.key && same_constant(key.get(), other.key.get()));
    }
    PyObject* held() const { return is_length() ? length() : held_by(*this); }  // borrowed, or nullptr
    // Of how many a container holds: the key is the builtin len().
    bool is_length() const { return key && key.get() == len(); }
    static PyObject* len();
    PyObject* length() const;
    mutable PyRef length_ = {};  // what was told last
  };
  // What a source holds is an input of the program: it is held to its structure, as arguments are, and no fact is
  // recorded of which one it is.
  struct Input {
    Source source;
    ArgSpec spec;
    PyTypeObject* type;
    PyRef given = {};       // while capturing: what the program finds there, with symbols in it
    Py_ssize_t length = 0;  // likewise: of how many, when it began
  };
  void add_input(Source source, ArgSpec spec);
  const std::vector<Input>& inputs() const { return inputs_; }
  // Floats that a decision looked at (bits, from `next` on): later calls must give the same.
  void pin_floats(const CallLeaves& leaves, uint64_t pinned, size_t& next);
  void end_capture();  // of which nothing is to be kept
  // While capturing: whether state holds this tensor among the call's own, which is this very one at later calls.
  bool is_tied(PyObject* tensor) const;
  // One of the call's tensors, while capturing: those of later calls have no such attribute either.
  void absent(PyObject* tensor, PyObject* name);
  // Likewise of one of its tensors or containers: which object it is was asked. It is that very one at later calls; or
  // none of those that a dictionary has for keys, or another container holds.
  void same_object(PyObject* object) { tie(object); }
  // How the container holds others: themselves, weak references to them, or what id() gives of them.
  enum class HeldBy : uint8_t { Identity, Reference, Address };
  void stranger(PyObject* object, PyObject* container, HeldBy by);
  // Two of them were told apart: at later calls those are one that were, and no others.
  void all_different() { places_ = first_places_; }
  // The call's tensors and containers, once gathered: where state holds one of them, it must be that very one at later
  // calls; those that it does not hold must be none that facts speak of.
  void know(const CallLeaves& leaves);
  // Appends the inputs; false when one is no tensor, or of another type, or the call's tensors are not in the state as
  // they were.
  bool gather(CallLeaves& leaves, std::string* why) const;
  // Puts the symbols in their places. held: what gather() found there.
  void place(const std::vector<PyRef>& held, Symbols& symbols);
  // Tells of the sources of what is another one now than when it was recorded (then, now); whether there are any.
  // stays: of containers, whether the one that is there now will stay there, as the one before did.
  using Varied = std::function<void(Source, PyObject*, PyObject*)>;
  using Stays = std::function<bool(const Source&, PyObject*, PyObject*)>;
  bool collect_varied(const Stays& stays, const Varied& tell) const;
  // Tells of lists, deques and dictionaries by numbers that hold other things now, and whether they are of another
  // length.
  void each_grown(const std::function<void(PyObject*, bool)>& tell) const;

  // Told once of each key. value nullptr: there is no such key. False: nothing to record.
  // place: of the dictionary's record, once there is one; first 0.
  bool dict_item(uint32_t& place, PyObject* dict, PyObject* key, PyObject* value);
  // contents: what it held at the start of the call, when it was written since; else itself.
  void whole_dict(uint32_t& place, PyObject* dict, PyObject* contents);
  using Item = std::pair<PyRef, PyRef>;
  using Items = std::vector<Item>;
  // What is known of a dictionary by its place; none of the place 0.
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
  // How many a list, deque, dictionary or set held at the start, where nothing else is asked of it; and the input that
  // says so, nullptr where there is none.
  void length(PyObject* container, Py_ssize_t count);
  const Input* length_input(PyObject* container) const;
  void cell(PyObject* cell, PyObject* value);
  // A C structure member or __slots__ entry of an instance. descriptor: None for the value of a context variable (the
  // owner) and for the address that a weak reference points to, a str for an attribute that the class's own C code
  // looks up, a tuple for what the owner gives when it is called with that.
  void member(PyObject* owner, PyObject* descriptor, PyObject* value);

  ClassFacts& classes() { return classes_; }

  // Names for people: where an object was found.
  void name(PyObject* object, std::string path) { names_.emplace(object, std::move(path)); }
  std::string name_of(PyObject* object) const;

  // Keeps those facts for which `chosen`, called once with all of them, gives True (cresset.GuardEntry, a list of
  // booleans). Later calls are not held to the others. Throws PythonError.
  void filter(PyObject* chosen);

  bool holds(std::string* why);
  size_t size() const;
  std::vector<std::string> texts() const;
  int visit(visitproc visit, void* arg) const;

 private:
  struct Dict {
    PyRef dict;
    bool whole = false;  // these items and no others, in this order
    Items items;
  };
  struct List {
    PyRef list, contents;  // contents: a tuple
  };
  struct Set {
    PyRef set, contents;
    size_t kinds;  // of the numbers in it: {1} is equal to {True}
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
  bool dict_same(const Dict& fact, std::string* why) const;
  bool miss(std::string* why, PyObject* owner, PyObject* key, PyObject* expected, PyObject* got) const;

  bool is_input(PyObject* container, PyObject* key) const {
    return !inputs_.empty() && is_one_of_inputs(container, key);
  }
  bool is_one_of_inputs(PyObject* container, PyObject* key) const;

  // A value that a fact ties to this very object.
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
  ska::flat_hash_map<PyObject*, size_t> leaf_of_;       // while capturing: tensor -> position among the call's
  ska::flat_hash_map<PyObject*, size_t> container_of_;  // likewise: container
  std::vector<PyRef> tied_containers_;                  // by position; empty: not held by state
  ska::flat_hash_set<PyObject*> identities_;            // the objects that facts tie, once nothing is added
  bool ended_ = false;
  std::vector<std::pair<size_t, PyRef>> tied_leaves_;
  std::vector<std::pair<size_t, PyRef>> absent_;  // of the call's tensors: what they must not have
  struct Stranger {
    bool is_tensor;  // else a container
    HeldBy by;
    size_t position;
    PyRef container;
  };
  std::vector<uint32_t> places_;        // where the call was given each of its objects first; empty: nobody asked
  std::vector<uint32_t> first_places_;  // while capturing
  std::vector<Stranger> strangers_;
  std::vector<Dict> dicts_;
  DictWatch watch_;  // of dicts_: all that most calls look at
  std::vector<List> lists_;
  std::vector<Set> sets_;
  std::vector<Length> lengths_;
  std::vector<Cell> cells_;
  ClassFacts classes_;
  std::vector<Member> members_;
  std::unordered_map<PyObject*, std::string> names_;
};

}  // namespace cresset::frontend
