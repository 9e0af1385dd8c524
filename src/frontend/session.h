// One call under the evaluator: what it read of objects that existed before, and what it wrote to them.
//
// Provenance by identity: the session knows the objects that existed before the call and were reached, beginning with
// the function and its arguments. What is read of them is recorded as a fact (state_facts.h), and what was read is
// known from then on. Objects made during the call are not known; reading and writing them records nothing. Writes
// happen for real; those to known objects are kept for later calls.
//
// A call is captured in pieces (point.h): begin() starts one, for which all that live frames hold existed before.
#pragma once

#include <c10/util/flat_hash_map.h>

#include <array>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/address_table.h"
#include "bridge/capture.h"
#include "frontend/arg_spec.h"
#include "frontend/c_functions.h"
#include "frontend/eval/hooks.h"
#include "frontend/in_progress.h"
#include "frontend/known_arrays.h"
#include "frontend/object_records.h"
#include "frontend/piece_maker.h"
#include "frontend/point.h"
#include "frontend/record_run.h"
#include "frontend/state_facts.h"
#include "frontend/state_guard.h"
#include "frontend/write.h"
#include "frontend/young.h"

namespace cresset::frontend {

// Why such a call, and later ones, run natively: what a capture holds on to does not die.
inline constexpr const char* kWatchesDeaths = "may tell when an object dies";

// Why nothing is captured while a trace or profile function is set, or a tool of sys.monitoring is at work.
inline constexpr const char* kWatched = "somebody watches what runs (a debugger, a profiler, coverage)";

class Session {
 public:
  explicit Session(PieceMaker& maker) : maker_(maker) {}

  static Session* current();  // of this thread's evaluation; nullptr when there is none
  static Session* exchange_current(Session* other);
  const StateFacts& facts() const { return *facts_; }

  // A new piece: nothing is known, read or written.
  void begin(StateFacts& facts, bridge::Capture& capture);
  // Garbage collection rests, and what was made before the call is in no young generation.
  void know_ages(Young& young) { young_ = &young; }
  // Arguments, with what their structure holds: guarded elsewhere.
  void add_argument(const ArgSpec& spec, PyObject* object, PyObject* path);
  // What live frames hold, with `spec` as of their contents: no object is kept by this that the program may drop.
  void add_frames(const ArgSpec& spec, PyObject* contents);
  // The compiler's own state, which differs while it captures: reading it records nothing.
  void ignore(PyObject* dict_or_class, const char* key);
  // Calls with every frame evaluated. nullptr with an exception set when it raised.
  PyRef call(PyObject* function, PyObject* args, PyObject* kwargs);
  // Likewise of frames that go on.
  PyRef resume(const Place& place, PyRef contents, PyObject* value, PyObject* exception);
  const InProgress& in_progress() const { return in_progress_; }
  bool begins_plainly() { return maker_.begins_plainly(); }
  bool in_transform() const;  // of torch.func, or in a level of forward differentiation
  // The piece ended at the operation in progress, which may run code of the program before it is done.
  void ends_here() { ended_in_ = in_progress_.activation; }
  // It ended for good inside of C functions, which hold numbers of it still: what they give is given plain.
  void ends_inside_calls(const CressetActivation* innermost);
  // The objects that it holds; and that it holds none any more, since nothing more is captured.
  int visit_held(visitproc visit, void* arg) const;
  void let_go();
  // Where refusal() is kWatchesDeaths: whose. Borrowed; nullptr: of several.
  PyObject* dying() const { return dying_; }
  // Keeps an object alive until the call ends.
  void keep(PyRef object) { kept_.push_back(std::move(object)); }

  // What is done now may not be done in later calls, or again (bridge/control_flow.h): until end_part(), an effect on
  // objects that were there before makes the part fail before it happens. roots: what the part can reach of the call's
  // own.
  void begin_part(PyObject* roots);
  void end_part() { outer_.pop_back(); }
  // Runs autograd's record for the capture, whose C++ code calls the program: without the GIL, frames evaluated.
  void run_part(PyObject* roots, const std::function<void()>& run, RecordRun& seen);

  // Whether a tuple of constants was there before: of the code, or of state.
  bool is_older(PyObject* tuple) { return young_ != nullptr && (!PyObject_GC_IsTracked(tuple) || !is_young(tuple)); }
  // Of a function that the call's own generator holds: its cells and defaults are not the call's.
  void learn_what_it_holds(PyObject* function);
  // Whether the program got this int as the address of an object that is another one at each call.
  bool is_address(PyObject* number) const { return addresses_.count(number) != 0; }
  // It lives on: from the next capture on the program's call of id() is done between two pieces. Whether that is news.
  bool leave_address(PyObject* number);

  bool existed(PyObject* object) const {
    const ObjectRecord* const record = objects_.find(object);
    return record != nullptr && record->known;
  }
  // Whether the call made the object, while a piece is open.
  bool is_own(PyObject* object) { return open() && !existed(object) && is_young(object); }
  // Whether it is an argument that the piece must not look into (ArgSpec::Kind::Opaque).
  bool is_opaque(PyObject* object) const { return opaque_.count(object) != 0; }
  const KnownArrays& arrays() const { return arrays_; }
  // Whether no fact speaks of what it holds.
  bool is_closed(PyObject* object) const;
  // The steps from (args, kwargs) to a container among the arguments; nullptr for other objects.
  PyObject* argument_path(PyObject* object) const;
  PyObject* way_to(PyObject* object);  // likewise, for later calls to go: they look into what it leads through
  std::vector<Write>& writes() { return writes_; }
  void remove_symbols_of_frames();  // numbers take their place, in all frames that are evaluated
  // Whether C code that called a function in whose midst the capture ended has not come back yet to the frames from
  // here outwards.
  bool is_in_calls_at_the_end(const CressetActivation* innermost);
  // What the call may have put numbers into without a write that speaks of it: containers that autograd's record
  // refers to, where nothing else of the call's may (of hooks on the call's own tensors), and objects that were there
  // before and that no fact led to.
  const std::vector<PyRef>& changed_unseen() const { return changed_unseen_; }
  // Generators, iterators and exceptions among the arguments (has_fate), and the paths to them.
  struct ArgumentGenerator {
    PyRef reference, path;  // to a generator a weak one: it is finalized when the program drops it
    PyObject* get() const;  // nullptr when it is gone
  };
  const std::vector<ArgumentGenerator>& generators() const { return generators_; }
  // Generators that state was found to hold, which the next piece that begins there is to hand on.
  std::vector<StateFacts::Source>& found_generators() { return found_generators_; }
  // While the piece is open, symbols stand in containers and objects that were there before.
  void place_symbols() { symbols_placed_ = true; }
  // Tells what state holds whether the piece looked into it.
  void note_looks();
  // What a list of the call's own is the sum of: a list that nobody looked into, and items; nullptr for other objects.
  struct Sum {
    PyRef list, items, sum;  // items: a tuple
  };
  const Sum* sum_of(PyObject* list) const {
    const auto found = sums_.find(list);
    return found != sums_.end() ? &found->second : nullptr;
  }
  // Why later calls cannot repeat this one; empty when they can.
  const std::string& refusal();
  // Whether that is a change of a class which an earlier piece of the call made, and which later calls would share.
  bool changes_shared_class();
  // Whether that is the watching of somebody who may have gone by then.
  bool was_unseen() const { return unseen_; }
  // Whether the program's outermost frame has ended: what runs is done by what it held, when that dies.
  bool has_ended() const { return outermost_frames_ > 1; }

 private:
  friend struct SessionHooks;
  // Machinery: of symbolic numbers, done natively, as they are. Replacement: of cresset._capture_patches, which sees
  // them as they are. LoggerQuestion: Logger.isEnabledFor.
  enum class CodeRole : uint8_t { Program, Machinery, Replacement, LoggerQuestion, NestedTensors };
  CodeRole role_of(PyCodeObject* code);

  PyRef watched(const std::function<PyRef()>& run);
  // Whether a piece is open, and the program at work: not a capture kernel that asks a shape rule in Python.
  bool open() const { return capture_ != nullptr && !capture_->closed() && capture_->recording == 0; }
  void start(CressetActivation* activation, Operation::Kind kind, int operation);
  int truth(CressetActivation* activation, PyObject* value);
  int same(PyObject* left, PyObject* right);
  PyRef length_in_state(const CressetCall& call);
  CressetAction operate_whole(CressetActivation* activation, const CressetOperator& op, PyObject** result);
  bool looks_into_grown(const CressetOperator& op);
  bool indexes_by_any(const CressetActivation& activation, const CressetOperator& op);
  bool computes_by_any(const CressetActivation& activation, const CressetOperator& op);
  bool stores_by_any(const CressetActivation& activation, const CressetWrite& write);
  bool may_end_at_pin() const;
  CressetAction operate_natively(CressetActivation* activation, const CressetOperator& op, Operation::Kind kind,
                                 bool foreign, PyObject** result);
  CressetAction operate(CressetActivation* activation, const CressetOperator& op, PyObject** result);
  void add_frame(const ArgSpec& spec, PyObject* parts, const std::function<PyRef(size_t)>& path_of);
  [[gnu::cold]] void refuse(std::string why);
  bool is_outer(PyObject* object) const;
  [[gnu::cold]] void fail_part(const char* what);
  void no_effect_on(PyObject* object, const char* what, const char* method = nullptr);  // in a part: fails it
  void no_write_in_part(const CressetWrite& write);
  void no_call_in_part(const CCall& what, const CressetCall& call);
  bool may_be_changed_back(const CressetWrite& write);
  void check_changed_back(RecordRun& seen);
  void enter_in_record(const CressetActivation& activation);
  void touch(PyObject* object) {
    if (record_run_ != nullptr) touch_in_record(object);
  }
  void touch_in_record(PyObject* object);
  void learn(PyObject* object) {
    if (object != nullptr && !is_constant_value(object)) learn_object(object);
  }
  void learn_object(PyObject* object);
  void add_write(Write write);
  void learn_guarded(PyObject* object);
  // What calling or reading such an object comes to: always the same objects.
  static std::vector<PyRef> behind(PyObject* object);
  void learn_class(PyTypeObject* type);
  void learn_function(PyObject* function);  // with what a bound method consists of
  // Whether this is the first time that the key is read or written in this call.
  bool first(PyObject* container, PyObject* key) {
    if (!may_be_unlooked_.empty()) objects_[container].looked = true;
    return seen_.insert({container, key});
  }
  bool mark_whole(PyObject* object) {
    ObjectRecord& record = objects_[object];
    record.looked |= record.whole;
    return !std::exchange(record.whole, true);
  }
  bool is_whole(PyObject* object) {
    ObjectRecord* const record = objects_.find(object);
    return record != nullptr && (record->looked = true, record->whole);
  }
  // Whether all its slots are facts already: of a container that was read as a whole, these are its items alone.
  bool are_slots_known(PyObject* object);
  bool is_looked_into(PyObject* object) const;
  PyRef concatenated(const CressetOperator& op);
  std::optional<CressetAction> operate_on_arrays(CressetActivation* activation, const CressetOperator& op,
                                                 PyObject** result);
  std::optional<CressetAction> call_of_arrays(CressetActivation* activation, const CCall& what, const CressetCall& call,
                                              PyObject** result);
  bool writes_to_array(const CressetWrite& write);
  KnownArrays::Varies what_varies() const;
  void look_at_sum(PyObject* list);
  void meet(PyObject* object);
  bool refuse_generator(PyObject* value, PyObject* container = nullptr, PyObject* key = nullptr);
  void read_key(PyObject* dict, PyObject* key, PyObject* value) { read_key(objects_[dict], key, value); }
  void read_key(ObjectRecord& dict, PyObject* key, PyObject* value);
  void read_asked(ObjectRecord& dict, PyObject* key, PyObject* value);
  bool is_first_read(ObjectRecord& dict, PyObject* key) {
    const uint64_t bit = uint64_t{1} << (address_hash(key) >> 58),
                   met = std::exchange(dict.keys_met, dict.keys_met | bit);
    return ((met & bit) == 0 && !dict.listed) || is_listed_first(dict, key);
  }
  bool is_listed_first(ObjectRecord& dict, PyObject* key);
  void list_keys(ObjectRecord& dict);
  bool is_value_as_key(PyObject* key) const;
  PyObject* one_key(PyObject* key);
  void mark_read(PyObject* container, PyObject* key);
  void read_whole(PyObject* container, int depth = 0);
  void read_deep(PyObject* object, int depth = 0);  // with the containers in containers that the call made
  void will_write(PyObject* container);
  void read_attribute(const CressetAttributeRead& read);
  void read_attribute(PyObject* owner, PyObject* name, PyObject* value);
  void read_of_tensor(PyObject* tensor, PyObject* name);
  bool asks_for_data(const CressetAttributeRead& read) const;
  void read_of_new(const CressetAttributeRead& read);
  void read_stores(const CressetAttributeRead& read);
  void read_contains(PyObject* container, PyObject* item, bool found = false);
  void note_key(PyObject* container, PyObject* key, bool found);
  void note_keys(const CCall& what, const CressetCall& call);
  void note_is(PyObject* left, PyObject* right);
  void note_value(const ArgSpec& spec, PyObject* object);
  void note_is_of_values(PyObject* left, PyObject* right);
  bool is_argument(PyObject* object) const;
  void note_member(PyObject* container, PyObject* key);
  void note_address(const CressetActivation& activation, const CressetCall& call, PyObject* number);
  void note_key_by_address(PyObject* container, PyObject* number, bool found);
  void compare_addresses(PyObject* left, PyObject* right);
  void compute_with_address(PyObject* number);
  void use_addresses(const CressetOperator& op);
  void use_addresses(const CressetCall& call);
  void read_super(const CressetAttributeRead& read);
  void read_class(PyTypeObject* type, PyObject* name);
  void note_classes(const CressetCall& call);
  bool looks_inside(const CressetCall& call) const;
  bool pins_any(const CressetActivation& activation, const CressetCall& call, bool is_operator);
  CressetAction call_cached(const CressetActivation& activation, const CressetCall& call, PyObject** result);
  void read_context_variable(PyObject* variable, bool will_change);
  bool is_closed_to_facts(PyObject* object) const;
  bool holds_foreign(PyObject* container) const;
  void read_instance(ObjectRecord& owner, PyObject* name, PyObject* value);
  void read_computed(PyObject* owner, PyObject* name, PyObject* found, PyObject* value);
  void hold_metadata(PyObject* tensor);
  void read_weakref(PyObject* reference, PyObject* result);
  bool watches_death(const CCall& what, const CressetCall& call);
  bool may_end_a_life(const CressetWrite& write);
  bool may_end_a_life(const CCall& what);
  void learn_keys(PyObject* container);
  void adopt_module(PyObject* module);
  void meet_unknown(PyObject* object);
  bool is_young(PyObject* object);
  void learn_old_class(PyTypeObject* type);
  void learn_mode(const CressetActivation& activation);
  void learn_default(PyObject* function, PyObject* keyword, PyObject* value);
  void learn_defaults(const CressetActivation& activation);
  void learn_closure(ObjectRecord& function);
  void read_module(PyObject* modules, PyObject* name, PyObject* value);
  void will_insert(PyObject* dict, PyObject* key);
  void read_item(PyObject* container, PyObject* key, PyObject* value);
  void make_own(PyObject* display);
  // What only the call's own tensors have: their gradient, attributes that somebody set.
  bool is_of_this_call(PyObject* tensor, PyObject* name) const;
  bool looks_into_opaque(const CressetAttributeRead& read);  // what its own state gives, not its class
  bool before_write(const CressetWrite& write);              // whether it is to be a call
  void after_write(const CressetWrite& write);
  bool drops_gradient(PyObject* owner, PyObject* name, PyObject* value) const;
  void log_attribute(PyObject* owner, PyObject* name, PyObject* value);
  void no_effects_again(PyObject* callable);
  void will_set_attribute(const CCall& what, const CressetCall& call);
  void will_write_class(PyTypeObject* type);
  void will_decorate(PyTypeObject* type);
  void refuse_shared_class(PyTypeObject* type);
  void log_class(PyTypeObject* type, PyObject* name);
  CressetAction before_function(CressetActivation* activation, const CressetCall& call);
  CressetAction read_int(CressetActivation* activation, const CressetCall& call, PyObject* tensor, PyObject** result);
  CressetAction ask_layout(CressetActivation* activation, const CressetCall& call, PyObject* question,
                           PyObject** result);
  CressetAction make_number(CressetActivation* activation, const CressetCall& call, PyObject** result);
  CressetAction call_whole(CressetActivation* activation, const CressetCall& call);
  CressetAction before_call(CressetActivation* activation, const CressetCall& call, PyObject** result);
  // *result: as the evaluator's hook has it.
  void after_call(CressetActivation* activation, const CressetCall& call, PyObject** result, PyObject* exception);
  [[gnu::cold]] void after_end(CressetActivation* activation, const CressetCall& call, PyObject** result,
                               PyObject* exception);
  [[gnu::cold]] void note_pins(const CressetActivation& activation, const CressetCall& call, PyObject* result,
                               const std::vector<PyRef>& unpinned, bool of_operator);
  // The operation in progress gave `value`: where the piece ended, the next one goes on with it.
  void go_on_with(CressetActivation* activation, PyRef& value);
  bool was_in_call_at_the_end(const CressetActivation* activation);
  void after_failure(CressetActivation* activation);
  void note_call(const CressetActivation& activation, const CressetCall& call, PyObject* result);
  CCall classify(const CressetCall& call);
  bool is_plain_question(const CressetCall& call) const;
  bool is_ordinary(const CressetCall& call, uint8_t special) const;
  bool is_told_for_good(PyObject* value) const;
  static uint64_t next_piece();
  void note_question(const CressetCall& call, const PyObject* result);
  CCall effect_of(const CressetActivation& activation, const CressetCall& call);
  CressetAction before_c_call(CressetActivation* activation, const CressetCall& given, PyObject** result);
  CressetAction before_known_call(CressetActivation* activation, const CCall& what, const CressetCall& call,
                                  PyObject** result);
  bool looks_at_text_of_float(const CressetCall& call) const;
  bool look_at_texts(CressetActivation* activation, CressetCall& call);
  CressetAction look_at_text(CressetActivation* activation, const CressetOperator& op, PyObject** result);
  CressetAction call_method_of_text(CressetActivation* activation, const CressetCall& call, PyObject** result);
  CressetAction look_in_progress(CressetActivation* activation, bool of_float, PyObject** result);
  void read_all(PyObject* object);
  PyRef names_in_frame(const CressetActivation& activation, const CressetCall& call);
  PyObject* with_names_of_frame(const CressetCall& call);
  void hands_methods_on(const CressetCall& call);
  CressetAction log_warning(CressetActivation* activation, const CressetCall& call, PyObject** result);
  bool takes_warnings();
  CressetAction use_setting(const CressetCall& call, PyObject** result);
  PyObject* stand_in(PyRef function);
  void log_method(const CCall& what, const CressetCall& call);
  bool takes_back(const CCall& what, const CressetCall& call);
  CressetAction enter(CressetActivation& activation);
  void unseen();

  PieceMaker& maker_;
  StateFacts* facts_ = nullptr;
  bridge::Capture* capture_ = nullptr;
  InProgress in_progress_;
  PyObject* dying_ = nullptr;  // borrowed
  const CressetActivation *ended_in_ = nullptr, *asked_in_ = nullptr;
  struct CallAtTheEnd {
    const CressetActivation* activation;
    int instruction;
  };
  std::vector<CallAtTheEnd> in_calls_at_the_end_;
  std::shared_ptr<void> batching_;  // bridge/symbolic_batching.h, once torch.func.vmap was met
  std::vector<StateFacts::Source> found_generators_;
  ObjectRecords objects_;
  std::unordered_map<PyObject*, PyRef> argument_paths_;
  AddressSet<AddressPair> seen_, ignored_;
  PyRef keys_met_;                                           // a dictionary, of equal keys to one of them
  static constexpr int kClassReads = 8;                      // bits
  std::array<AddressPair, 1 << kClassReads> class_reads_{};  // some of those in seen_: (class, name)
  AddressTable<PyCodeObject*, CodeRole> roles_;
  AddressTable<AddressPair, CCall> classified_;
  std::unordered_set<const void*> plain_questions_;  // definitions of functions, as note_question() finds them
  std::unordered_set<PyObject*> opaque_;             // arguments
  std::unordered_set<PyObject*> argument_tensors_;
  std::unordered_map<PyObject*, PyRef> contents_before_;   // of containers that were written
  std::unordered_map<PyObject*, PyRef> variables_before_;  // context variables that were set
  std::vector<Write> writes_;
  std::vector<MayBeUnlooked> may_be_unlooked_;
  std::vector<std::pair<ArgSpec*, PyObject*>> values_;  // borrowed: tuples and constants of arguments
  std::unordered_map<PyObject*, Sum> sums_;
  KnownArrays arrays_;
  bool symbols_placed_ = false;
  std::vector<PyRef> changed_unseen_;
  std::vector<ArgumentGenerator> generators_;
  Young* young_ = nullptr;  // if ages are known
  std::unordered_map<PyObject*, AskedAddress> addresses_;
  CressetEvalHooks* hooks_ = nullptr;                       // while frames are evaluated
  std::vector<std::pair<PyObject*, PyObject*>> added_;      // (set, item) that the call puts into a set anew
  std::vector<std::pair<PyObject*, PyObject*>> inserting_;  // (defaultdict, key) that is being read, and is not there
  bool changes_shared_class_ = false, had_key_ = false;     // of the write in progress
  std::vector<std::pair<PyRef, unsigned>> decorated_;  // classes of earlier pieces written to; what each had before
  int tangent_levels_ = 0;                             // that the piece has entered
  bool unseen_ = false;                                // a frame ran in CPython's own loop while the piece was open
  int outermost_frames_ = 0;                           // that were entered, one after the other
  bool is_told_ = false;                              // of what is added next: whether an iterator made it for who asks
  int inside_ = 0;                                    // of how many containers and objects, while arguments are added
  std::vector<std::unordered_set<PyObject*>> outer_;  // of each part in progress
  RecordRun* record_run_ = nullptr;                   // where that is autograd's record
  PyRef called_instead_;                              // of a method of a tensor that was called last
  std::vector<PyRef> kept_;  // keeps addresses from being used again while they are keys of our tables
  std::string refusal_;
};

}  // namespace cresset::frontend
