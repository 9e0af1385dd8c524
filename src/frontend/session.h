// One call under the evaluator: what it read of objects that existed before, and what it wrote to them.
//
// Provenance by identity: the session knows the objects that existed before the call and were reached, beginning with
// the function and its arguments. What is read of them is recorded as a fact (state_facts.h), and what was read is
// known from then on. Objects made during the call are not known; reading and writing them records nothing. Writes
// happen for real; those to known objects are kept for later calls.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "bridge/capture.h"
#include "frontend/c_functions.h"
#include "frontend/eval/hooks.h"
#include "frontend/state_facts.h"

namespace cresset::frontend {

// A write to an object that existed before the call.
struct Write {
  enum class Kind : uint8_t { Attribute, Item, Cell, InPlace, Method } kind;
  PyRef owner, key;           // Method: key is the C method (a descriptor of the owner's type)
  std::vector<PyRef> values;  // empty for Attribute, Item, Cell: deleted
  PyRef kwnames;              // Method
  int operation = 0;          // InPlace: NB_INPLACE_*
};

class Session {
 public:
  Session(StateFacts& facts, bridge::Capture& capture) : facts_(facts), capture_(capture) {}

  // Arguments, with what their structure holds: guarded elsewhere.
  void add_argument(PyObject* object, PyObject* path);
  // Calls with every frame evaluated. nullptr with an exception set when it raised.
  PyRef call(PyObject* function, PyObject* args, PyObject* kwargs);

  bool existed(PyObject* object) const { return known_.count(object) != 0; }
  // The steps from (args, kwargs) to a container among the arguments; nullptr for other objects.
  PyObject* argument_path(PyObject* object) const;
  const std::vector<Write>& writes() const { return writes_; }
  // Why later calls cannot repeat this one; empty when they can.
  const std::string& refusal() const { return refusal_; }

 private:
  friend struct SessionHooks;
  struct Pair {
    const void *a, *b;
    bool operator==(const Pair&) const = default;
  };
  struct PairHash {
    size_t operator()(const Pair& p) const {
      return reinterpret_cast<size_t>(p.a) * 0x9E3779B97F4A7C15ull ^ reinterpret_cast<size_t>(p.b);
    }
  };

  void refuse(std::string why);
  void learn(PyObject* object);
  // Whether this is the first time that the key is read or written in this call.
  bool first(PyObject* container, PyObject* key) { return seen_.insert({container, key}).second; }
  void read_key(PyObject* dict, PyObject* key, PyObject* value);
  void read_whole(PyObject* container, int depth = 0);
  void will_write(PyObject* container);
  void read_attribute(const CressetAttributeRead& read);
  void read_attribute(PyObject* owner, PyObject* name, PyObject* value);
  void read_instance(PyObject* owner, PyObject* name, PyObject* value);
  void read_item(PyObject* container, PyObject* key, PyObject* value);
  void before_write(const CressetWrite& write);
  void after_write(const CressetWrite& write);
  void log_attribute(PyObject* owner, PyObject* name, PyObject* value);
  CressetAction before_call(const CressetCall& call, PyObject** result);
  void after_call(const CressetCall& call, PyObject* result);
  void log_method(const CCall& what, const CressetCall& call);
  CressetAction enter(const CressetActivation& activation);

  StateFacts& facts_;
  bridge::Capture& capture_;
  std::unordered_map<PyObject*, PyRef> known_;
  std::unordered_map<PyObject*, PyRef> argument_paths_;
  std::unordered_set<Pair, PairHash> seen_;
  std::unordered_map<PyCodeObject*, bool> unseen_;  // code of symbolic numbers themselves
  std::unordered_set<PyObject*> whole_, keys_written_;
  std::unordered_map<PyObject*, PyRef> contents_before_;  // of containers that were written
  std::vector<Write> writes_;
  std::vector<PyRef> kept_;  // keeps addresses from being used again while they are keys of our tables
  std::string refusal_;
};

}  // namespace cresset::frontend
