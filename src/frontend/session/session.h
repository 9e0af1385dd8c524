// A call under the evaluator: its reads of objects which existed before the call, and its writes to them.
//
// Provenance is decided by identity. The session knows the reached objects which existed before the call, beginning
// with the function and its arguments. A read from a known object becomes a guard (state_guards.h), and the value
// becomes known. Objects created during the call are not known; their reads and writes are not recorded. Writes happen
// for real; writes to known objects are stored for replay.
//
// A call is captured in graph segments (resume_point.h): begin() starts a segment, for which all contents of live
// frames existed before.
#pragma once

#include <c10/util/flat_hash_map.h>

#include <array>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/address_table.h"
#include "bridge/capture/capture.h"
#include "frontend/cpython/logged_write.h"
#include "frontend/cpython/new_objects.h"
#include "frontend/cpython/object_records.h"
#include "frontend/eval/hooks.h"
#include "frontend/feedback/autograd_trace_run.h"
#include "frontend/frames/resume_point.h"
#include "frontend/guards/arg_spec.h"
#include "frontend/guards/state_guards.h"
#include "frontend/guards/torch_modes.h"
#include "frontend/session/current_operation.h"
#include "frontend/session/segment_client.h"
#include "frontend/trace_rules/c_function_effects.h"
#include "frontend/values/constant_arrays.h"

namespace cresset::frontend {

// Reason for running this call and later calls in eager mode: a capture keeps objects alive.
inline constexpr const char* kWatchesDeaths = "may tell when an object dies";

// Reason for not capturing while a trace or profile function or a sys.monitoring tool is active.
inline constexpr const char* kWatched = "somebody watches what runs (a debugger, a profiler, coverage)";

class Session {
 public:
  explicit Session(PieceMaker& maker) : maker_(maker) {}

  static Session* current();  // of this thread's evaluation; nullptr without evaluation
  static Session* exchange_current(Session* other);
  const StateFacts& facts() const { return *facts_; }

  // Starts a new segment without known objects, reads and writes.
  void begin(StateFacts& facts, bridge::Capture& capture);
  // Garbage collection is paused, and objects from before the call are in no young generation.
  void know_ages(Young& young) { young_ = &young; }
  // Adds arguments and the contents of their structure, which the argument spec guards.
  void add_argument(const ArgSpec& spec, PyObject* object, PyObject* path);
  // Adds the contents of live frames, with their `spec`. Objects which the program may release are not kept alive.
  void add_frames(const ArgSpec& spec, PyObject* contents);
  // Excludes the compiler's own state, which differs during capture, from guards.
  void ignore(PyObject* dict_or_class, const char* key);
  // Calls the function and evaluates every frame. Returns nullptr with an exception set when the call raised.
  PyRef call(PyObject* function, PyObject* args, PyObject* kwargs);
  // Resumes frames in the same way.
  PyRef resume(const Place& place, PyRef contents, PyObject* value, PyObject* exception);
  const InProgress& in_progress() const { return in_progress_; }
  bool begins_plainly() { return maker_.begins_plainly(); }
  bool in_transform() const;  // of torch.func, or in a forward differentiation level
  // The segment ended at the operation in progress, which may still run code of the program.
  void ends_here() { ended_in_ = in_progress_.activation; }
  // The capture ended finally inside of C functions which still hold symbolic numbers. Their results become plain.
  void ends_inside_calls(const CressetActivation* innermost);
  // Visits the held objects; releases them when nothing more is captured.
  int visit_held(visitproc visit, void* arg) const;
  void let_go();
  // When refusal() is BreakKind::ObjectLifetime: the watched object. Borrowed; nullptr: several objects.
  PyObject* dying() const { return dying_; }
  // Keeps an object alive until the call ends.
  void keep(PyRef object) { kept_.push_back(std::move(object)); }

  // Code from here to end_part() may run zero or several times in later calls (control_flow.h). A side effect on an
  // older object makes the part fail before it happens. roots: the call's own objects which the part can reach.
  void begin_part(PyObject* roots);
  void end_part() { outer_.pop_back(); }
  // Executes the autograd graph for the capture. Its C++ code calls the program without the GIL; frames are evaluated.
  void run_part(PyObject* roots, const std::function<void()>& run, RecordRun& seen);

  // Whether a tuple of constants is older than the call: from the code or from state.
  bool is_older(PyObject* tuple) { return young_ != nullptr && (!PyObject_GC_IsTracked(tuple) || !is_young(tuple)); }
  // For a function held by the call's own generator: its cells and defaults are older than the call.
  void learn_what_it_holds(PyObject* function);
  // Whether the program received this int as the address of an object which differs at each call.
  bool is_address(PyObject* number) const { return addresses_.count(number) != 0; }
  // The address outlives the segment. From the next capture on the call of id() runs between two segments. Returns
  // whether this is new.
  bool leave_address(PyObject* number);

  bool existed(PyObject* object) const {
    const ObjectRecord* const record = objects_.find(object);
    return record != nullptr && record->known;
  }
  // Whether the call created the object, while a segment is open.
  bool is_own(PyObject* object) { return open() && !existed(object) && is_young(object); }
  // Whether the object is an argument which the segment must not inspect (ArgSpec::Kind::Opaque).
  bool is_opaque(PyObject* object) const { return opaque_.count(object) != 0; }
  const KnownArrays& arrays() const { return arrays_; }
  // Whether no guard covers its contents.
  bool is_closed(PyObject* object) const;
  // The steps from (args, kwargs) to a container among the arguments; nullptr for other objects.
  PyObject* argument_path(PyObject* object) const;
  PyObject* way_to(PyObject* object);  // the same for use by later calls, with guards on the path
  std::vector<Write>& writes() { return writes_; }
  void remove_symbols_of_frames();  // replaces symbols by numbers in all evaluated frames
  // Whether a C function inside of which the capture ended has not yet returned to these frames.
  bool is_in_calls_at_the_end(const CressetActivation* innermost);
  // Objects which may have received numbers without a recorded write. These are containers held only by the autograd
  // graph (hooks on the call's own tensors), and older objects without a guard.
  const std::vector<PyRef>& changed_unseen() const { return changed_unseen_; }
  // Generators, iterators and exceptions among the arguments (has_fate), and the paths to them.
  struct ArgumentGenerator {
    PyRef reference, path;  // weak for a generator, which is finalized when the program releases it
    PyObject* get() const;  // nullptr when it is dead
  };
  const std::vector<ArgumentGenerator>& generators() const { return generators_; }
  // Generators found in state, which the next segment from this point passes on.
  std::vector<StateFacts::Source>& found_generators() { return found_generators_; }
  // While the segment is open, symbols are stored in older containers and objects.
  void place_symbols() { symbols_placed_ = true; }
  // Records in the state inputs whether the segment inspected them.
  void note_looks();
  // A list of the call which concatenates an uninspected list and items; nullptr for other objects.
  struct Sum {
    PyRef list, items, sum;  // items: a tuple
  };
  const Sum* sum_of(PyObject* list) const {
    const auto found = sums_.find(list);
    return found != sums_.end() ? &found->second : nullptr;
  }
  // Why later calls cannot repeat this call; empty when they can.
  const BreakReason& refusal();
  // Whether the reason is a change of a class from an earlier segment, which later calls would share.
  bool changes_shared_class();
  // Whether the reason is a watcher which may be inactive at later calls.
  bool was_unseen() const { return unseen_; }
  // Whether the program's outermost frame has ended: finalizers of its objects may be running.
  bool has_ended() const { return outermost_frames_ > 1; }

 private:
  friend struct SessionHooks;
  struct OperatorRules;   // operator_rules.cpp
  struct CallRules;       // call_rules.cpp
  struct KnownCallRules;  // session_calls.cpp
  struct CallQuestions;
  struct NumberRules;  // session_numbers.cpp
  struct WriteRules;   // session.cpp
  // Machinery: code of symbolic numbers, run in CPython. Replacement: code of cresset._substitutes, which sees
  // symbolic numbers as they are. LoggerQuestion: Logger.isEnabledFor.
  enum class CodeRole : uint8_t { Program, Machinery, Replacement, LoggerQuestion, NestedTensors };
  CodeRole role_of(PyCodeObject* code);

  PyRef watched(const std::function<PyRef()>& run);
  // Whether a segment is open and the program is running, and not a Python shape rule called by a capture kernel.
  bool open() const { return capture_ != nullptr && !capture_->closed() && capture_->recording == 0; }
  void start(CressetActivation* activation, Operation::Kind kind, int operation);
  int truth(CressetActivation* activation, PyObject* value);
  int same(PyObject* left, PyObject* right);
  PyRef length_in_state(const CressetCall& call);
  CressetAction operate_whole(CressetActivation* activation, const CressetOperator& op, PyObject** result);
  bool stores_by_any(const CressetActivation& activation, const CressetWrite& write);
  bool may_end_at_pin() const;
  CressetAction operate_natively(CressetActivation* activation, const CressetOperator& op, Operation::Kind kind,
                                 bool foreign, PyObject** result);
  CressetAction operate(CressetActivation* activation, const CressetOperator& op, PyObject** result);
  void add_frame(const ArgSpec& spec, PyObject* parts, const std::function<PyRef(size_t)>& path_of);
  [[gnu::cold]] void refuse(BreakKind kind, std::string detail);
  bool is_outer(PyObject* object) const;
  [[gnu::cold]] void fail_part(const char* what);                                       // BreakKind::SideEffect
  void no_effect_on(PyObject* object, const char* what, const char* method = nullptr);  // in a part: makes it fail
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
  // Objects behind an identity-guarded object; calls and reads of it lead to them at every call.
  static std::vector<PyRef> behind(PyObject* object);
  void learn_class(PyTypeObject* type);
  void learn_function(PyObject* function);  // with the components of a bound method
  // Whether the call reads or writes the key for the first time.
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
  // Whether all slots are guarded; for a container, reading it as a whole guards only its items.
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
  void read_deep(PyObject* object, int depth = 0);  // including nested containers of the call
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
  // Attributes only of the call's own tensors: their gradient, attributes set by user code.
  bool is_of_this_call(PyObject* tensor, PyObject* name) const;
  bool looks_into_opaque(const CressetAttributeRead& read);  // reads its own state and not its class
  bool before_write(const CressetWrite& write);              // whether the write is to run as a call
  void after_write(const CressetWrite& write);
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
  // *result: as in the evaluator's hook.
  void after_call(CressetActivation* activation, const CressetCall& call, PyObject** result, PyObject* exception);
  [[gnu::cold]] void after_end(CressetActivation* activation, const CressetCall& call, PyObject** result,
                               PyObject* exception);
  [[gnu::cold]] void note_pins(const CressetActivation& activation, const CressetCall& call, PyObject* result,
                               const std::vector<PyRef>& unpinned, bool of_operator);
  // The operation in progress returned `value`: if the segment ended there, the next segment continues with it.
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
  std::shared_ptr<void> batching_;  // bridge/decompositions/vmap_rules.h, after the first torch.func.vmap
  std::vector<StateFacts::Source> found_generators_;
  ObjectRecords objects_;
  std::unordered_map<PyObject*, PyRef> argument_paths_;
  AddressSet<AddressPair> seen_, ignored_;
  PyRef keys_met_;                                           // maps equal keys to a single object
  static constexpr int kClassReads = 8;                      // bits
  std::array<AddressPair, 1 << kClassReads> class_reads_{};  // a cache of seen_ entries: (class, name)
  AddressTable<PyCodeObject*, CodeRole> roles_;
  AddressTable<AddressPair, CCall> classified_;
  std::unordered_set<const void*> plain_questions_;  // function definitions found by note_question()
  std::unordered_set<PyObject*> opaque_;             // arguments
  std::unordered_set<PyObject*> argument_tensors_;
  std::unordered_map<PyObject*, PyRef> contents_before_;   // earlier contents of written containers
  std::unordered_map<PyObject*, PyRef> variables_before_;  // context variables which were set
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
  std::vector<std::pair<PyObject*, PyObject*>> added_;      // (set, item) pairs which the call adds
  std::vector<std::pair<PyObject*, PyObject*>> inserting_;  // (defaultdict, key) of a read which inserts the key
  bool changes_shared_class_ = false, had_key_ = false;     // of the write in progress
  std::vector<std::pair<PyRef, unsigned>> decorated_;       // written classes of earlier segments; their previous flags
  int tangent_levels_ = 0;                                  // entered by the segment
  bool unseen_ = false;       // a frame ran in CPython's own loop while the segment was open
  int outermost_frames_ = 0;  // number of outermost frames entered in sequence
  bool is_told_ = false;      // whether an iterator created the next added object for its reader
  int inside_ = 0;            // nesting depth while arguments are added
  std::vector<std::unordered_set<PyObject*>> outer_;  // per part in progress
  RecordRun* record_run_ = nullptr;                   // set while the part is the autograd graph
  PyRef called_instead_;                              // last replacement for a method of a tensor
  std::vector<PyRef> kept_;                           // keeps addresses in the tables from being reused
  BreakReason refusal_;
};

}  // namespace cresset::frontend
