// Where the objects of a call come from: which existed before it, which are arguments and by which path, and their age.
//
// Provenance is decided by identity. Invariants: an object with a known record existed before the call, and stays alive
// until let_go(). An object without a record is assumed to be the call's own, unless its age says otherwise. Addresses
// in the tables are not reused, because the tables' objects are kept.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "frontend/cpython/logged_write.h"
#include "frontend/cpython/new_objects.h"
#include "frontend/cpython/object_records.h"
#include "frontend/eval/hooks.h"
#include "frontend/guards/arg_spec.h"
#include "frontend/guards/state_guards.h"
#include "frontend/values/constant_arrays.h"

namespace cresset::frontend {

class Provenance {
 public:
  // A generator, iterator or exception among the arguments (has_fate), and the path to it.
  struct ArgumentGenerator {
    PyRef reference, path;  // weak for a generator, which is finalized when the program releases it
    PyObject* get() const;  // nullptr when it is dead
  };
  // A list of the call which concatenates an uninspected list and items.
  struct Sum {
    PyRef list, items, sum;  // items: a tuple
  };

  // Starts a segment without known objects.
  void begin();
  // Keeps an object alive until the call ends, and returns it.
  PyObject* keep(PyRef object) { return kept_.emplace_back(std::move(object)).get(); }
  int visit_held(visitproc visit, void* arg) const;
  void let_go();

  // ---- Ages

  // Garbage collection is paused, and objects from before the call are in no young generation.
  void know_new_objects(NewObjects& new_objects) { new_ = &new_objects; }
  bool knows_ages() const { return new_ != nullptr; }
  // Whether the call created the object. Also true if this cannot be determined.
  bool is_new(PyObject* object) const;
  // Whether a tuple of constants is older than the call: from the code or from state.
  bool is_older(PyObject* tuple) const { return new_ != nullptr && (!PyObject_GC_IsTracked(tuple) || !is_new(tuple)); }

  // ---- Known objects

  ObjectRecord* record_of(PyObject* object) const { return objects_.find(object); }
  ObjectRecord& record(PyObject* object) { return objects_[object]; }
  bool existed(PyObject* object) const {
    const ObjectRecord* const record = objects_.find(object);
    return record != nullptr && record->known;
  }
  // Whether no guard covers its contents.
  bool is_uninspected(PyObject* object) const;
  // Whether an older object has contents which no guard covers.
  bool is_uninspected_by_guards(PyObject* object) const;
  // Whether a container holds an opaque argument or an older closed object.
  bool holds_foreign(PyObject* container) const;
  // Marks all contents as guarded; whether they were not before.
  bool mark_whole(PyObject* object) {
    ObjectRecord& record = objects_[object];
    record.looked |= record.whole;
    return !std::exchange(record.whole, true);
  }
  bool is_whole(PyObject* object) {
    ObjectRecord* const record = objects_.find(object);
    return record != nullptr && (record->looked = true, record->whole);
  }
  // Whether all slots are guarded; for a container, reading it as a whole guards only its items.
  bool are_slots_known(PyObject* object);
  // A list that an earlier segment began to fill for a display or comprehension. It has no other holder, so each
  // segment creates its own list.
  void make_own(PyObject* display);
  // The earlier contents of a container which the call wrote to; nullptr for other containers.
  PyObject* contents_before(PyObject* container) const;
  void keep_contents_before(PyObject* container, PyRef copy) { contents_before_.emplace(container, std::move(copy)); }

  // ---- Arguments

  void add_path(PyObject* object, PyRef path) { argument_paths_.emplace(object, std::move(path)); }
  void add_tensor(PyObject* tensor) { argument_tensors_.insert(tensor); }
  void add_opaque(PyObject* object) { opaque_.insert(object); }
  void add_generator(ArgumentGenerator generator) { generators_.push_back(std::move(generator)); }
  void add_unlooked(MayBeUnlooked input) { may_be_unlooked_.push_back(std::move(input)); }

  bool is_argument_tensor(PyObject* object) const { return argument_tensors_.count(object) != 0; }
  // Whether the object is guarded by structure.
  bool is_argument(PyObject* object) const { return is_argument_tensor(object) || argument_path(object) != nullptr; }
  // Whether the object is an argument which the segment must not inspect (ArgSpec::Kind::Opaque).
  bool is_opaque(PyObject* object) const { return opaque_.count(object) != 0; }
  bool any_opaque() const { return !opaque_.empty(); }
  // The steps from (args, kwargs) to a container among the arguments; nullptr for other objects.
  PyObject* argument_path(PyObject* object) const;
  PyObject* way_to(PyObject* object);  // the same for use by later calls, with guards on the path
  const std::vector<ArgumentGenerator>& generators() const { return generators_; }
  // Generators found in state, which the next segment from this point passes on.
  std::vector<StateGuards::Source>& found_generators() { return found_generators_; }

  // ---- Contents which the segment need not inspect

  // A read of the container begins, if an input may stay uninspected.
  void note_look(PyObject* container) {
    if (!may_be_unlooked_.empty()) objects_[container].looked = true;
  }
  // Plain data among the arguments whose len() needs no inspection; nullptr for other objects.
  MayBeUnlooked* plain_data(PyObject* object);
  bool is_looked_into(PyObject* object) const;
  // Records in the state inputs whether the segment inspected them.
  void note_looks(const std::vector<LoggedWrite>& writes);
  // list + [item] without inspecting the list: later calls repeat the concatenation. Empty for other operations.
  PyRef concatenated(const CressetOperator& op, const std::vector<LoggedWrite>& writes);
  bool any_sums() const { return !sums_.empty(); }
  const Sum* sum_of(PyObject* list) const {
    const auto found = sums_.find(list);
    return found != sums_.end() ? &found->second : nullptr;
  }
  // Turns the concatenation into an ordinary list, and returns the uninspected list; empty for other objects.
  PyRef open_sum(PyObject* list);
  ConstantArrays& arrays() { return arrays_; }
  const ConstantArrays& arrays() const { return arrays_; }
  // Objects which may have received numbers without a recorded write. These are containers held only by the autograd
  // graph (hooks on the call's own tensors), and older objects without a guard.
  const std::vector<PyRef>& changed_unseen() const { return changed_unseen_; }
  void add_changed_unseen(PyObject* object);

 private:
  ObjectRecords objects_;
  std::unordered_map<PyObject*, PyRef> argument_paths_;
  std::unordered_set<PyObject*> opaque_;  // arguments
  std::unordered_set<PyObject*> argument_tensors_;
  std::unordered_map<PyObject*, PyRef> contents_before_;
  std::vector<MayBeUnlooked> may_be_unlooked_;
  std::unordered_map<PyObject*, Sum> sums_;
  ConstantArrays arrays_;
  std::vector<PyRef> changed_unseen_;
  std::vector<ArgumentGenerator> generators_;
  std::vector<StateGuards::Source> found_generators_;
  NewObjects* new_ = nullptr;  // if ages are known
  std::vector<PyRef> kept_;    // keeps addresses in the tables from being reused
};

}  // namespace cresset::frontend
