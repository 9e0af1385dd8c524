// A call under the evaluator: its reads of objects which existed before the call, and its writes to them.
//
// The session owns the parts that watch a call, and holds the trace rules: what becomes of each operation that the
// evaluator reports. Provenance says which objects existed before the call. A read from such an object becomes a guard
// (ReadLog), and the value becomes known. Writes happen for real; writes to known objects are stored for replay
// (WriteLog). A rule speaks to the part that it needs. A part knows only the parts before it in the list of members.
//
// A call is captured in graph segments (resume_point.h): begin() starts a segment, for which all contents of live
// frames existed before.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "frontend/session/argument_walk.h"
#include "frontend/session/asked_addresses.h"
#include "frontend/session/attribute_reads.h"
#include "frontend/session/call_classifier.h"
#include "frontend/session/current_operation.h"
#include "frontend/session/entered_frames.h"
#include "frontend/session/identity_log.h"
#include "frontend/session/observed_lives.h"
#include "frontend/session/open_segment.h"
#include "frontend/session/provenance.h"
#include "frontend/session/read_log.h"
#include "frontend/session/segment_client.h"
#include "frontend/session/subgraphs.h"
#include "frontend/session/write_log.h"

namespace cresset::frontend {

class Session {
 public:
  explicit Session(SegmentMaker& maker) : maker_(maker) {}
  Session(const Session&) = delete;  // the parts refer to each other

  static Session* current();  // of this thread's evaluation; nullptr without evaluation
  static Session* exchange_current(Session* other);

  OpenSegment& segment() { return segment_; }
  Provenance& provenance() { return provenance_; }
  const Provenance& provenance() const { return provenance_; }
  Subgraphs& subgraphs() { return subgraphs_; }
  AskedAddresses& addresses() { return addresses_; }
  IdentityLog& identities() { return identities_; }
  ReadLog& reads() { return reads_; }
  AttributeReads& attributes() { return attributes_; }
  ArgumentWalk& arguments() { return arguments_; }
  ObservedLives& lives() { return lives_; }
  WriteLog& writes() { return writes_; }
  EnteredFrames& frames() { return frames_; }
  const AskedAddresses& addresses() const { return addresses_; }
  const OpenSegment& segment() const { return segment_; }
  CallClassifier& classifier() { return classifier_; }
  CurrentOperation& operation() { return operation_; }
  SegmentMaker& maker() { return maker_; }

  // Starts a new segment without known objects, reads and writes.
  void begin(StateGuards& guards, bridge::Capture& capture);
  // Records in the state inputs whether the segment inspected them.
  void note_looks();
  // Calls the function and evaluates every frame. Returns nullptr with an exception set when the call raised.
  PyRef call(PyObject* function, PyObject* args, PyObject* kwargs);
  // Resumes frames in the same way.
  PyRef resume(const Place& place, PyRef contents, PyObject* value, PyObject* exception);
  // Executes the autograd graph for the capture. Its C++ code calls the program without the GIL; frames are evaluated.
  void run_subgraph(PyObject* roots, const std::function<void()>& run, AutogradTraceRun& seen);
  // Visits the held objects; releases them when nothing more is captured.
  int visit_held(visitproc visit, void* arg) const;
  void let_go();
  // Whether the call created the object, while a segment is open.
  bool is_own(PyObject* object) const {
    return segment_.is_open() && !provenance_.existed(object) && provenance_.is_new(object);
  }
  void remove_symbols_of_frames();  // replaces symbols by numbers in all evaluated frames
  // While the segment is open, symbols are stored in older containers and objects.
  void place_symbols() { symbols_placed_ = true; }
  // Why later calls cannot repeat this call; empty when they can.
  const BreakReason& refusal();

 private:
  friend struct SessionHooks;
  struct OperatorRules;   // operator_rules.cpp
  struct CallRules;       // call_rules.cpp
  struct KnownCallRules;  // session_calls.cpp
  struct CallQuestions;
  struct NumberRules;  // session_numbers.cpp

  PyRef watched(const std::function<PyRef()>& run);

  // ---- Operators

  int truth(CressetActivation* activation, PyObject* value);
  int same(PyObject* left, PyObject* right);
  CressetAction operate_whole(CressetActivation* activation, const CressetOperator& op, PyObject** result);
  CressetAction operate_natively(CressetActivation* activation, const CressetOperator& op, Operation::Kind kind,
                                 bool foreign, PyObject** result);
  CressetAction operate(CressetActivation* activation, const CressetOperator& op, PyObject** result);
  std::optional<CressetAction> operate_on_arrays(CressetActivation* activation, const CressetOperator& op,
                                                 PyObject** result);
  CressetAction look_at_string(CressetActivation* activation, const CressetOperator& op, PyObject** result);

  // ---- Calls

  CressetAction before_call(CressetActivation* activation, const CressetCall& call, PyObject** result);
  // *result: as in the evaluator's hook.
  void after_call(CressetActivation* activation, const CressetCall& call, PyObject** result, PyObject* exception);
  CressetAction before_function(CressetActivation* activation, const CressetCall& call);
  CressetAction call_whole(CressetActivation* activation, const CressetCall& call);
  CressetAction before_c_call(CressetActivation* activation, const CressetCall& given, PyObject** result);
  CressetAction before_known_call(CressetActivation* activation, const CCall& what, const CressetCall& call,
                                  PyObject** result);
  std::optional<CressetAction> call_of_arrays(CressetActivation* activation, const CCall& what, const CressetCall& call,
                                              PyObject** result);
  CressetAction call_cached(const CressetActivation& activation, const CressetCall& call, PyObject** result);
  CressetAction use_setting(const CressetCall& call, PyObject** result);
  CressetAction log_warning(CressetActivation* activation, const CressetCall& call, PyObject** result);
  CCall effect_of(const CressetActivation& activation, const CressetCall& call);
  void note_call(const CressetActivation& activation, const CressetCall& call, PyObject* result);
  void note_classes(const CressetCall& call);
  void hands_methods_on(const CressetCall& call);

  // ---- Numbers and strings

  CressetAction make_number(CressetActivation* activation, const CressetCall& call, PyObject** result);
  CressetAction call_method_of_string(CressetActivation* activation, const CressetCall& call, PyObject** result);
  bool looks_at_string_of_float(const CressetCall& call) const;
  bool look_at_strings(CressetActivation* activation, CressetCall& call);

  static uint64_t next_segment();

  SegmentMaker& maker_;
  OpenSegment segment_;
  Provenance provenance_;
  Subgraphs subgraphs_{segment_, provenance_};
  AskedAddresses addresses_{segment_, provenance_};
  IdentityLog identities_{segment_, provenance_, addresses_};
  ReadLog reads_{segment_, provenance_, subgraphs_, identities_};
  AttributeReads attributes_{segment_, provenance_, subgraphs_, reads_};
  ArgumentWalk arguments_{provenance_, identities_, reads_};
  ObservedLives lives_{provenance_, maker_};
  WriteLog writes_{segment_, provenance_, subgraphs_, addresses_, identities_, reads_, attributes_, lives_};
  EnteredFrames frames_{segment_, provenance_, subgraphs_, reads_};
  CallClassifier classifier_{provenance_, subgraphs_};
  CurrentOperation operation_{segment_, subgraphs_, maker_};

  std::shared_ptr<void> batching_;     // bridge/decompositions/vmap_rules.h, after the first torch.func.vmap
  CressetEvalHooks* hooks_ = nullptr;  // while frames are evaluated
  bool symbols_placed_ = false;
  PyRef called_instead_;  // last replacement for a method of a tensor
};

}  // namespace cresset::frontend
