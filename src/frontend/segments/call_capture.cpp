#include "frontend/segments/call_capture.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>

#include "base/log.h"
#include "bridge/autograd/gradients.h"
#include "frontend/cache_entries/automatic_dynamic.h"
#include "frontend/cache_entries/growing_containers.h"
#include "frontend/cache_entries/size_loops.h"
#include "frontend/cpython/gc_pause.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/reference_count.h"
#include "frontend/cpython/stats.h"
#include "frontend/eval/bytecode.h"
#include "frontend/eval/room.h"
#include "frontend/feedback/eager_autograd_calls.h"
#include "frontend/feedback/opaque_calls.h"
#include "frontend/feedback/specializations.h"
#include "frontend/feedback/thresholds.h"
#include "frontend/frames/location.h"
#include "frontend/guards/torch_controls.h"
#include "frontend/segments/capture_environment.h"
#include "frontend/segments/capture_setup.h"
#include "frontend/segments/capture_state.h"
#include "frontend/segments/next_segment.h"
#include "frontend/segments/program_client.h"
#include "frontend/segments/segment.h"
#include "frontend/segments/write_lock.h"
#include "frontend/session/live_at_break.h"
#include "frontend/session/session.h"
#include "frontend/trace_rules/hook_ids.h"
#include "frontend/trace_rules/other_tracers.h"
#include "frontend/trace_rules/substitutes.h"
#include "frontend/trace_rules/transforms.h"
#include "frontend/values/exceptions.h"
#include "frontend/values/object_layout.h"
#include "frontend/values/pending_error.h"
#include "frontend/values/symbolic_strings.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {
namespace {

class CaptureRun final : public SegmentMaker {
  using enum BreakKind;

 public:
  CaptureRun(const CaptureRequest& request, std::optional<NoCollection>& no_collection)
      : request_(request), no_collection_(no_collection), new_(no_collection->ages_known()) {
    const bool ages_known = no_collection->ages_known();
    enter_inference_apart(request.inference_apart);
    if (request.options.evaluate) session_ = std::make_unique<Session>(*this);
    if (session_ != nullptr && ages_known) session_->provenance().know_new_objects(new_);
  }

  // Runs the call once, for real. Returns its result, or nullptr with the function's exception set.
  PyRef call(std::shared_ptr<CacheEntry> entry, PyObject* args, PyObject* kwargs) {
    const auto natively = [&] { return PyRef::steal(PyObject_Call(request_.function, args, kwargs)); };
    return run(std::move(entry), args, kwargs, natively, [&] {
      PyObject *given_args = segment_->given_args(), *given_kwargs = segment_->given_kwargs();
      return session_ != nullptr ? session_->call(request_.function, given_args, given_kwargs)
                                 : PyRef::steal(PyObject_Call(request_.function, given_args, given_kwargs));
    });
  }

  // Runs the rest of the call from a resume point.
  PyRef resume(const std::shared_ptr<ResumePoint>& point, std::shared_ptr<CacheEntry> entry, PyRef frames,
               PyObject* value, PyObject* exception) {
    home_ = &point->resume_entries;
    dynamic_ = &point->automatic_dynamic;
    worth_ = &point->worth;
    options_ = point->plain_sizes ? &plain_options_ : &request_.options;
    const PyRef kwargs = outcome(value, exception);
    const auto natively = [&] {
      retired_.clear();
      segment_->take_given_args();
      return frontend::resume(point->place, std::move(frames), value, exception, /*natively=*/true);
    };
    return run(std::move(entry), frames.get(), kwargs.get(), natively, [&] {
      PyObject* given = PyDict_GetItemString(segment_->given_kwargs(), "value");
      frames = {};
      return session_->resume(point->place, segment_->take_given_args(), given, exception);
    });
  }

  // The cache entries of all segments.
  std::vector<std::shared_ptr<CacheEntry>> cache_entries() const {
    std::vector<std::shared_ptr<CacheEntry>> all;
    each_segment([&](const GraphSegment& segment) { all.push_back(segment.entry()); });
    return all;
  }

  PyRef go_on(CressetActivation* activation, CressetPoint point, PyObject* value, PyObject* exception) override {
    const Room room;
    segment_->settle_native_results(value);
    PyRef number = begin_after(activation, point, value, exception);
    // Operators on tensors outside of captures (sparse tensors) would otherwise dispatch to the trace key. In a
    // torch.func transform the autograd levels hold symbolic sizes, which only kernels of the trace key accept.
    if (!segment_->capture().closed() || inside_transform()) return number;
    bridge::Capture::leave_dispatch_state();
    if (!session_->operation().is_in_calls_at_the_end(activation)) out_of_calls(activation);
    return number;
  }

  void out_of_calls(CressetActivation* activation) override {
    const bool goes_on = segment_->capture().closed() && !stopped_ && !segment_->refused();
    if (!goes_on && !inside_transform() && !request_.options.fullgraph) leave_to_python(activation);
  }

 private:
  PyRef begin_after(CressetActivation* activation, CressetPoint point, PyObject* value, PyObject* exception) {
    const Break& last = segment_->entry()->next;
    if (stopped_ || segment_->refused() || last.point == nullptr) return {};
    if (segment_->capture().failed()) return go_on_natively(), PyRef();
    std::string why;
    const Frames frames = frames_after(activation, point == CRESSET_BEFORE, &why);
    if (!frames.contents || !(frames.place == last.point->place)) return go_on_natively(), PyRef();
    time_.go();
    if (last.point->drops_value && exception == nullptr) value = Py_None;
    const SeeRunning running(frames.running);
    stopped_ = is_watched() || !begin_next(last, frames.contents.get(), outcome(value, exception).get());
    if (stopped_) return time_.stop(), go_on_natively(), PyRef();
    put_into_frames(activation, segment_->take_given_args().get(), frames.contents.get());
    PyObject* const given = PyDict_GetItemString(segment_->given_kwargs(), "value");
    return given != value ? PyRef::borrow(given) : PyRef();
  }

  void leave_to_python(CressetActivation* activation) {
    if (rest_) return;
    const OneForOne one;
    bridge::Capture::leave_dispatch_state();  // guards of torch's, in C code that has returned, have put it back
    session_->remove_symbols_of_frames();     // that C code had taken when the capture ended
    cresset_eval_leave(activation, CRESSET_LEAVE_ALL);
    no_collection_.reset();
    rest_ = request_.compiled.begin_eager_fallback();
  }

  void go_on_natively() {
    stopped_ = true;
    ++live_totals().eager_fallbacks;
    if (compiling_ != nullptr) compiling_->end();
  }

  template <class Natively, class Go>
  PyRef run(std::shared_ptr<CacheEntry> entry, PyObject* args, PyObject* kwargs, Natively&& natively, Go&& go) {
    time_.go();
    if (!open(std::move(entry), args, kwargs)) {
      keep_segment();
      request_.lock.give();
      return natively();
    }
    PyRef result = watch(go);
    if (!result && lacks_plain_sizes()) {
      if (may_begin_again()) return begin_again(natively);
      request_.plain_sizes = true;  // for later calls
    }
    if (!result || session_ == nullptr || segment_->capture().closed()) segment_->take_back_numbers();
    time_.stop();
    live_totals().ms_capture += time_.ms();
    if (!result) note_rejected();
    const bool ended = segment_->capture().closed();  // at a break, for good or until the next segment
    if (ended && segment_->entry()->next.point == nullptr) segment_->refuse(segment_->capture().why_closed());
    if (ended) refuse_earlier_segments();  // the eager rest may have changed a shared class
    const OneForOne one;
    if (!result) {
      SavedError exception;
      if (!ended) end_raised();
      if (session_ != nullptr) remove_written_symbols();
      exception.remove_symbols();
    } else if (!ended) {
      end_returned(args, kwargs, result.get());
    } else {
      segment_->capture().rethrow_deferred();
      segment_->settle_native_results(result.get());
    }
    if (result && session_ != nullptr) remove_written_symbols();
    rethrow();
    if (misuse_) return misuse_->restore(), PyRef();
    return result ? without_symbols(std::move(result)) : std::move(result);
  }

  // Inside of a torch.func transform, or of autograd's engine there, some code requires plain sizes. The call raised an
  // error unknown to eager mode. It may begin again if it has had no side effect so far.
  bool may_begin_again() {
    const bridge::Capture& capture = segment_->capture();
    return session_ != nullptr && home_ == nullptr && retired_.size() == 1 && !capture.closed() &&
           std::ranges::all_of(session_->writes().entries(), is_counter_of_torch) && !capture.has_effects_since(begun_);
  }

  bool begins_plainly() override {
    plainly_ = options_->dynamic && !request_.options.fullgraph && !inside_transform() && !may_begin_again();
    return plainly_;
  }

  // Requests another attempt with plain sizes: returns nullptr without an exception. If plain sizes are in use already,
  // CPython runs the call.
  template <class Natively>
  PyRef begin_again(Natively&& natively) {
    PyErr_Clear();
    segment_->capture().let_end_in_order(false);
    segment_->refuse({BreakKind::AutogradFeature,
                      "an operator that needs plain sizes inside of a transform, where no graph break is possible"});
    segment_->capture().flush(segment_->entry()->eager_reason);
    segment_->take_back_numbers();
    time_.stop();
    live_totals().ms_capture += time_.ms();
    keep_segment();
    if (!std::exchange(request_.plain_sizes, true)) return {};
    request_.lock.give();
    return natively();
  }

  struct Client final : ProgramClient {
    explicit Client(CaptureRun& run) : run_(run) {}
    void on_close() override { run_.time_.stop(); }
    bool runs_python_autograd() const override { return run_.session_ != nullptr; }
    void run_record(const std::vector<torch::autograd::Node*>& python, const std::function<void()>& run) override {
      runs_python_autograd() ? run_.run_record(python, run) : run();
    }
    bool end_at_break(const BreakReason& why) override { return run_.end_at_break(why); }
    CaptureRun& run_;
  };

  // Starts a segment. Returns false when an argument cannot take part.
  bool open(std::shared_ptr<CacheEntry> entry, PyObject* args, PyObject* kwargs) {
    auto segment = std::make_unique<GraphSegment>(*options_, std::move(entry), request_.profile);
    HooksOfCall::begin_segment(home_);
    if (segment_ != nullptr) NoCollection::again();
    bridge::Capture& capture = segment->capture();
    for (const ModuleGuards::NamedTensor& t : request_.names.tensors())
      capture.name_constant(THPVariable_Unpack(t.tensor), t.name);
    capture.set_client(std::make_shared<Client>(*this));
    capture.let_end_in_order(session_ != nullptr);
    capture.decides_on_input_scalars = session_ != nullptr && (capture.symbolic_numbers || !dynamic_->decisions);
    capture.specializes_input_scalars = session_ != nullptr && (capture.symbolic_numbers || !dynamic_->specializations);
    capture.is_later_segment = dynamic_ != &request_.automatic_dynamic;
    bool taken = true;
    try {
      segment->enter(args, kwargs);
    } catch (const bridge::CaptureAbort& e) {
      segment->refuse(e.reason());
      capture.let_end_in_order(false);
      capture.flush(segment->entry()->eager_reason);
      segment->take_back_numbers();
      taken = false;
    }
    if (request_.options.keep_rejected && taken && retired_.empty())
      std::tie(env_of_first_, symbols_of_first_) = std::tuple(capture.env_ptr(), capture.recorder().symbols());
    if (segment_ != nullptr) segment_->retire();
    retired_.push_back(std::move(segment_));
    segment_ = std::move(segment);
    begun_ = capture.done();
    known_ = how_much_is_known();
    if (!taken || session_ == nullptr) return taken;
    session_->begin(segment_->entry()->guards, capture);
    ArgumentWalk& arguments = session_->arguments();
    if (home_ != nullptr)
      arguments.add_frames(segment_->entry()->args, segment_->given_args());
    else
      arguments.add_argument(segment_->entry()->args, segment_->given_args(), checked(Py_BuildValue("(i)", 0)).get());
    arguments.add_argument(segment_->entry()->kwargs, segment_->given_kwargs(), checked(Py_BuildValue("(i)", 1)).get());
    if (segment_->places_symbols()) session_->place_symbols();
    const std::vector<StateGuards::Input>& inputs = segment_->entry()->guards.inputs();
    for (size_t i = 0; i < inputs.size(); ++i)
      if (is_structure(inputs[i].given.get()) || is_callable_by_parts(inputs[i].given.get()) ||
          is_symbolic_string(inputs[i].given.get()) || inputs[i].spec.kind == ArgSpec::Kind::Opaque ||
          inputs[i].spec.kind == ArgSpec::Kind::Tensor)
        arguments.add_argument(inputs[i].spec, inputs[i].given.get(),
                               checked(Py_BuildValue("(ln)", kStateRoot, static_cast<Py_ssize_t>(i))).get());
    return true;
  }

  template <class Go>
  PyRef watch(Go&& go) {
    bridge::Capture::Scope scope(segment_->capture());
    scope_ = &scope;
    CompilingFlag compiling;
    compiling_ = &compiling;
    if (session_ != nullptr) {
      for (const Bookkeeping& each : bookkeeping_names()) session_->reads().ignore(each.owner, each.name);
      session_->reads().ignore(HooksOfCall::counter(), "next_id");
    }
    std::optional<SubstitutedCalls> traced;
    if (session_ == nullptr) traced.emplace();
    PyRef result = go();
    traced.reset();
    rest_.reset();
    scope_ = nullptr;
    compiling_ = nullptr;
    return result;
  }

  // ---- The end of the call

  // Not if data caused the exception: other data with the same sizes may be valid.
  void note_rejected() {
    const bridge::Capture& capture = segment_->capture();
    const bool first = retired_.size() == 1;
    const bool by_sizes = capture.closed() ? capture.arguments_did_not_fit : !capture.recorder().reads_data();
    if (!request_.options.keep_rejected || !first || !by_sizes) return;
    CacheEntry& entry = *segment_->entry();
    entry.raised = true;
    entry.rejected = std::make_unique<RejectedSizes>(
        RejectedSizes{env_of_first_, symbols_of_first_, segment_->leaves().tensors.size()});
  }

  void end_raised() {
    bridge::Capture& capture = segment_->capture();
    capture.let_end_in_order(false);
    segment_->entry()->raised = true;
    segment_->refuse({Raised, "the call raised"});
    capture.flush({Raised, "the call raised"});
  }

  void end_returned(PyObject* args, PyObject* kwargs, PyObject* result) {
    bridge::Capture& capture = segment_->capture();
    capture.let_end_in_order(false);
    make_result(args, kwargs, result);
    if (!segment_->refused()) {
      compile_segment();
    } else {
      capture.flush(segment_->entry()->eager_reason);
      capture.rethrow_deferred();
    }
    segment_->take_back_numbers();  // late, because a list from an earlier segment is reconstructed with symbols
    keep_segment();
  }

  // Builds the reconstruction of the result, or records why it is impossible.
  void make_result(PyObject* args, PyObject* kwargs, PyObject* result) {
    CacheEntry& entry = *segment_->entry();
    if (session_ == nullptr) check_traced(args, kwargs);
    refuse_earlier_segments();
    if (session_ != nullptr && !session_->refusal().empty()) segment_->refuse(session_->refusal());
    entry.raised |= session_ != nullptr && session_->segment().was_unseen();
    if (session_ != nullptr && session_->operation().in_transform())
      segment_->refuse({AutogradFeature, "the call leaves a level of forward_ad open"});
    entry.after = TorchState::now();
    if (!entry.after.reachable_from(entry.state)) segment_->refuse({ChangedModes, "the call changes torch's modes"});
    if (segment_->refused()) return;
    segment_->begin_reconstructions(session_.get());
    const bridge::Capture::Scope scope(segment_->capture());  // input proxies act as their proxy tensors
    try {
      if (session_ != nullptr) entry.side_effects = effects_of(segment_->builder());
      entry.result = segment_->builder().build(result, "result");
      build_fates();
    } catch (const UnsupportedResult& e) {
      leave_address(e);
      return segment_->refuse(
          {e.kind, "the result holds " + e.path + " of type " + e.type_name + ", which cannot be reconstructed"});
    }
    if (segment_->capture().closed()) return segment_->refuse({NoReconstruction, kEndedMeanwhile});
    if (BreakReason why = end_reconstructions(UINT64_MAX); !why.empty()) segment_->refuse(std::move(why));
  }

  // The traced front end observes no writes, so it compares the state and the containers.
  void check_traced(PyObject* args, PyObject* kwargs) {
    CacheEntry& entry = *segment_->entry();
    std::string changed;
    if (!entry.modules.unchanged(&changed)) return segment_->refuse({SideEffect, "the call changes state: " + changed});
    if (!segment_->leaves_containers(args, kwargs))
      segment_->refuse({SideEffect, "the call changes a container among its arguments"});
  }

  // Refuses all segments of this call, so that later calls run in eager mode from the beginning.
  void refuse_earlier_segments() {
    if (session_ == nullptr || !session_->writes().changes_shared_class()) return;
    const BreakReason why =
        session_->refusal().empty() ? BreakReason(ChangedClass, "changes a class of its own") : session_->refusal();
    const auto refuse = [&](GraphSegment& segment) {
      segment.entry()->next = {};
      segment.refuse(why);
    };
    for (const std::unique_ptr<GraphSegment>& segment : retired_)
      if (segment != nullptr) refuse(*segment);
    if (segment_->capture().closed()) refuse(*segment_);
  }

  // Misuse is reported after the call has ended, because it must not interrupt code which CPython runs meanwhile.
  void compile_segment() {
    try {
      segment_->compile_and_run();
    } catch (const PythonError&) {
      misuse_.emplace();
      segment_->refuse({InvalidArguments, "misuse"});
    } catch (const c10::Error&) {
      raised_ = std::current_exception();
      segment_->entry()->raised = true;
      segment_->refuse({Raised, "the call raised"});
    }
  }

  // Rethrows an operator's exception from an ended segment, after its symbols are gone.
  void rethrow() {
    if (raised_) std::rethrow_exception(std::exchange(raised_, nullptr));
  }

  void keep_segment() {
    if (session_ != nullptr) session_->note_looks();
    note_generators();
    CacheEntry& entry = *segment_->entry();
    if (entry.program != nullptr && entry.next.point == nullptr && met_loops())
      entry.loops_of = kinds_of(segment_->leaves());
    if (home_ != nullptr && !is_repeated_ && !entry.raised) home_->add(segment_->entry());
    if (home_ != nullptr && !is_repeated_ && !is_error_)
      worth_->captured((!segment_->refused() && !entry.raised) || how_much_is_known() != known_);
    home_ = nullptr;
    is_repeated_ = false;
  }

  size_t how_much_is_known() const { return request_.compiled.feedback().size() + dynamic_->size(); }

  // A segment that found generators in state is not kept.
  void note_generators() {
    if (session_ == nullptr) return;
    for (StateGuards::Source& source : session_->provenance().found_generators()) {
      segment_->entry()->raised = true;
      if (std::find(dynamic_->state.begin(), dynamic_->state.end(), source) == dynamic_->state.end())
        dynamic_->state.push_back(std::move(source));
    }
    session_->provenance().found_generators().clear();
  }

  // ---- Graph breaks

  // Runs the captured operators now. The next segment begins after the operation in progress; otherwise CPython runs
  // the rest of the call.
  bool end_at_break(const BreakReason& why) {
    const py::gil_scoped_acquire gil;
    const SavedError pending;
    const NotEvaluated own_business;
    const Room room;
    const BreakReason at = segment_->capture().located(why);
    BreakReason obstacle;
    try {
      obstacle = make_break();
    } catch (const PythonError&) {
      PyErr_Clear();
      obstacle = {NoReconstruction, "its state cannot be read"};
    }
    if (!obstacle.empty() && !request_.options.fullgraph && !is_error_ && leaves_whole(obstacle))
      segment_->entry()->raised = true;  // the next call captures again
    if (!obstacle.empty()) {
      segment_->entry()->next = {};
      segment_->entry()->raised |= is_error_;  // the next call captures again
      BreakReason both = at;
      both.remark += " (" + obstacle.text() + ")";
      segment_->refuse(std::move(both));
      segment_->capture().flush(segment_->entry()->eager_reason);
      session_->operation().ends_inside_calls(cresset_eval_current());
    } else {
      segment_->entry()->next.why = at;
      compile_segment();
    }
    const OneForOne one;
    segment_->take_back_numbers();
    if (session_->operation().in_progress().in_transform || inside_transform()) settle_wrappers();
    session_->remove_symbols_of_frames();  // written values follow below
    remove_written_symbols();
    if (segment_->refused()) {
      segment_->entry()->next = {};
      if (compiling_ != nullptr) compiling_->end();
      if (home_ != nullptr) note_eager_fallback();  // refusing the first segment makes it an eager call instead
    } else if (!is_repeated_) {
      ++live_totals().graph_breaks;
      CRESSET_LOG(GraphBreaks, request_.name + ": graph break: " + at.text() + " " + at.advice());
      note_reason(request_.name, at);
    }
    keep_segment();
    if (is_error_) set_graph_break_error(request_.name, at), misuse_.emplace();
    const bool watches = session_->refusal().is(ObjectLifetime);
    if (watches) forget_segments(session_->lives().dying(), {ObjectLifetime, kWatchesDeaths});
    if (watches || obstacle.is(ObjectLifetime)) let_go();
    request_.lock.give();
    return rethrow(), true;
  }

  template <class F>
  void each_segment(F&& tell) const {
    for (const std::unique_ptr<GraphSegment>& segment : retired_)
      if (segment != nullptr) tell(*segment);
    if (segment_ != nullptr) tell(*segment_);
  }

  // Discards the segments that hold the object, and the last segment. Later calls run in eager mode there without state
  // guards.
  void forget_segments(PyObject* held, const BreakReason& why) {
    each_segment([&](GraphSegment& segment) {
      if (&segment != segment_.get() && held != nullptr && count_held_by(segment, held) == 0) return;
      segment.entry()->next = {};
      segment.refuse(why);
      segment.entry()->guards = {};
    });
  }

  // Releases objects, so that they die as without a capture.
  void let_go() {
    each_segment([](GraphSegment& segment) { segment.retire(); });
    session_->let_go();
  }

  bool only_we_hold(PyObject* object) const override {
    HeldCount count{object};
    session_->visit_held(count_held, &count);
    each_segment([&](const GraphSegment& segment) { segment.visit(count_held, &count); });
    return Py_REFCNT(object) <= count.found;
  }

  void note_eager_fallback() {
    ++live_totals().eager_fallbacks;
    note_reason(request_.name, segment_->entry()->eager_reason);
  }

  // Whether a surrounding call is opaque from now on, because the segment could not end inside of it.
  bool leaves_whole(const BreakReason& obstacle) {
    const CressetActivation* at = cresset_eval_current();
    if (leave_whole(at)) return true;
    if (obstacle.is(InOperation)) return leave_whole_at(at);
    const CacheEntry& entry = *segment_->entry();
    if (obstacle.is(ChangedModes) && entry.after.inference_mode != entry.state.inference_mode)
      return !std::exchange(request_.inference_apart, true);
    if (closed_frame_ <= 0) return false;
    for (int i = frame_count_ - closed_frame_; i > 0 && at != nullptr; --i) at = at->caller;
    return leave_whole_at(at);
  }

  // State or a caller receives an address: the next call captures again. Addresses in frames belong to copy.deepcopy().
  void leave_address(const UnsupportedResult& held) {
    if (held.address != nullptr && !held.in_frames && session_->addresses().leave_address(held.address))
      segment_->entry()->raised = true;
  }

  // Reconstructs all frames. Remembers the frame with an object which cannot be reconstructed.
  Reconstruction build_frames(PyObject* contents) {
    frame_count_ = static_cast<int>(PyTuple_GET_SIZE(contents));
    ReconstructionBuilder& builder = segment_->builder();
    builder.behind_break = true;
    builder.number_items_of(contents);
    try {
      return builder.build(contents, "frames");
    } catch (UnsupportedResult& e) {
      e.in_frames = true;
      if (e.helps_as_a_whole) closed_frame_ = static_cast<int>(builder.item());
      throw;
    }
  }

  // Whether a side effect stores an iterator in state that a frame also uses. The next segment must accept it at any
  // position, but an iterator in state has a fixed position.
  bool shares_iterator(PyObject* contents) const {
    if (PyTuple_Check(contents)) {
      PyObject** const items = PySequence_Fast_ITEMS(contents);
      return std::any_of(items, items + PyTuple_GET_SIZE(contents), [&](PyObject* o) { return shares_iterator(o); });
    }
    const bool moves = PyIter_Check(contents) != 0 && PyGen_CheckExact(contents) == 0;
    return moves && segment_->builder().makes(contents);
  }

  // Builds the reconstructions of the frames and the operation, or returns why they are impossible.
  BreakReason make_break() {
    closed_frame_ = -1;
    CacheEntry& entry = *segment_->entry();
    const InProgress& op = session_->operation().in_progress();
    if (request_.options.fullgraph) return {UserRequest, "fullgraph=True"};
    if (is_error_ = graph_breaks_are_errors(); is_error_) return {UserRequest, kErrorOnGraphBreak};
    refuse_earlier_segments();
    const BreakReason refusal = session_->refusal();
    entry.raised |= session_->segment().was_unseen();
    if (!refusal.empty()) return refusal;
    CressetActivation* innermost = cresset_eval_current();
    if (op.activation == nullptr || innermost != op.activation || innermost->instruction != op.instruction)
      return {InOperation, "in the middle of an operation of the interpreter"};
    if (session_->frames().has_ended()) return {NoReconstruction, "when the program has ended, and what it held dies"};
    if (op.in_transform)
      return {AutogradFeature, "inside a transform of torch.func, or a level of torch.autograd.forward_ad"};
    if (op.uses_up) return {SideEffect, "the operation in progress has begun to use up what it was given"};
    if (segment_->capture().has_effects_since(op.done))
      return {SideEffect, "the operation had written tensors or drawn random numbers before"};
    std::string why;
    const Frames frames = frames_after(innermost, op.kind == Operation::Kind::Truth, &why);
    if (!frames.contents) return {NoReconstruction, why};
    const SeeRunning running(frames.running);
    entry.after = op.state;
    if (!entry.after.reachable_from(entry.state)) return {ChangedModes, "inside a change of torch's modes"};
    segment_->begin_reconstructions(session_.get());
    ReconstructionBuilder& builder = segment_->builder();
    entry.next.point = point_at(frames.place);
    entry.next.point->plain_sizes |= std::exchange(plainly_, false);
    entry.next.operation = op.kept();
    try {
      entry.side_effects = effects_of(builder);
      if (shares_iterator(frames.contents.get())) return {NoReconstruction, "an iterator in state goes on"};
      entry.next.frames = build_frames(frames.contents.get());
      for (const PyRef& operand : entry.next.operation.operands)
        entry.next.operands.push_back(builder.build(operand.get(), "operand"));
      build_fates();
    } catch (const UnsupportedResult& e) {
      leave_address(e);
      return {e.kind, e.path + " of type " + e.type_name + " lives on, which cannot be reconstructed"};
    }
    if (segment_->capture().closed()) return {NoReconstruction, kEndedMeanwhile};
    entry.next.operation.operands.clear();
    collect_constants(entry.args, entry.next.constants);
    collect_constants(entry.kwargs, entry.next.constants);
    for (const StateGuards::Input& input : entry.guards.inputs()) collect_constants(input.spec, entry.next.constants);
    session_->operation().ends_here();
    return end_reconstructions(op.serial);
  }

  // Runs the autograd graph of a segment which ends, at a break or with the call.
  void run_record(const std::vector<torch::autograd::Node*>& python, const std::function<void()>& run) {
    const py::gil_scoped_acquire gil;
    std::optional<CompilingFlag> compiling;
    if (scope_ == nullptr) compiling.emplace();
    AutogradTraceRun seen;
    const auto learn = [&] {
      const SavedError raised;
      const NotEvaluated own_business;
      const bool at_break = segment_->entry()->next.point != nullptr;
      defer_to_autograd(seen, segment_->capture(),
                        [&](PyObject* object) { return lives_on(object, segment_->builder(), *session_, at_break); });
      if (seen.failed || !segment_->capture().subgraphs().subgraph_failure().empty()) seen.undo();
    };
    const PyRef objects = objects_of(python);
    bridge::SubgraphRecorder& subgraphs = segment_->capture().subgraphs();
    if (has_hook_of_c(objects.get())) return subgraphs.fail_subgraph({AutogradFeature, "a hook is C code"});
    try {
      session_->run_subgraph(objects.get(), run, seen);
    } catch (...) {
      if (seen.calls.empty()) leave_nodes_to_autograd(objects.get());
      learn();
      throw;
    }
    learn();
  }

  // If a function must be left to autograd and was not recorded as such before, the next call captures again.
  BreakReason end_reconstructions(uint64_t before) {
    BreakReason why = segment_->end_reconstructions(before);
    if (!why.empty() && segment_->capture().gradients().retained_gradients()) defer_to_autograd(UseOfAutograd::Retains);
    if (!why.empty() && segment_->capture().gradients().freed_graph()) defer_to_autograd(UseOfAutograd::Frees);
    if (!why.empty()) segment_->entry()->raised |= count_eager_autograd_calls() != eager_autograd_calls_;
    return why;
  }

  std::vector<ReplayedEffect> effects_of(ReconstructionBuilder& builder) {
    drop_replaced(session_->writes().entries());
    return build_side_effects(builder, session_->writes().entries());
  }

  void build_fates() {
    if (session_ == nullptr) return;
    for (const Provenance::ArgumentGenerator& generator : session_->provenance().generators()) {
      Fate& fate = segment_->entry()->fates.emplace_back();
      fate.path = generator.path;
      fate.lives_on = generator.get() != nullptr;
      if (fate.lives_on) fate.reconstruction = segment_->builder().build(generator.get(), "a generator");
    }
  }

  std::shared_ptr<ResumePoint> point_at(const Place& place) {
    for (const std::shared_ptr<ResumePoint>& point : request_.points)
      if (point->place == place) return point;
    request_.points.push_back(std::make_shared<ResumePoint>());
    request_.points.back()->place = place;
    request_.points.back()->drops_value = place.drops_value();
    return request_.points.back();
  }

  // Begins the next segment in the same evaluation. Returns false when CPython runs the rest of the call.
  bool begin_next(const Break& last, PyObject* frames, PyObject* kwargs) {
    const std::shared_ptr<ResumePoint> point = last.point;
    is_repeated_ = false;
    const bool mine = !left_to_others(frames, kwargs) && (request_.lock.take() || wait_for(request_.lock));
    std::shared_ptr<CacheEntry> entry = mine ? new_resume_entry(last, frames, kwargs) : nullptr;
    if (entry == nullptr) return request_.lock.give(), false;
    home_ = &point->resume_entries;
    dynamic_ = &point->automatic_dynamic;
    worth_ = &point->worth;
    options_ = point->plain_sizes ? &plain_options_ : &request_.options;
    if (!open(std::move(entry), frames, kwargs)) return keep_segment(), request_.lock.give(), false;
    segment_->is_repeated = is_repeated_;
    scope_->switch_to(segment_->capture());
    return true;
  }

  // Returns nullptr when no further segment is allowed. An existing segment is captured again, so that this call
  // reaches the code behind it, but only a limited number of times.
  std::shared_ptr<CacheEntry> new_resume_entry(const Break& last, PyObject* frames, PyObject* kwargs) {
    const TorchState state = TorchState::now();
    for (const std::shared_ptr<CacheEntry>& known : last.point->resume_entries) {
      if (!begins_with(*known, state, frames, kwargs)) continue;
      if (!known->eager_reason.empty())
        CRESSET_LOG(GraphBreaks, request_.name + ": eager fallback from " + last.point->place.text() + ": " +
                                     known->eager_reason.text());
      if (!known->eager_reason.empty() || ++repeated_ > threshold::kRepeated) return nullptr;
      is_repeated_ = true;
      break;
    }
    const auto make = [&](bool numbers) {
      return make_resume_entry(request_.options, last, state, frames, kwargs, numbers);
    };
    AutomaticDynamic& automatic_dynamic = last.point->automatic_dynamic;
    expect_numbers(automatic_dynamic, last.frames, "frames");
    std::shared_ptr<CacheEntry> entry = make(false);
    if (entry == nullptr || (last.point->resume_entries.empty() && automatic_dynamic.ints.empty())) return entry;
    last.point->worth.dropped +=
        learn(automatic_dynamic, last.point->resume_entries, entry->args, entry->kwargs, /*floats=*/true);
    entry = make(true);
    const bool raised = PyDict_GetItemString(kwargs, "raised") != nullptr;  // the evaluator holds the exception
    return entry == nullptr || !raised || !holds_symbol(entry->kwargs) ? entry : make(false);
  }

  // ---- Symbolic numbers

  // Replaces the symbols in written values by plain numbers, as in later calls.
  void remove_written_symbols() {
    if (session_ != nullptr) take_symbols_out(session_->writes().entries(), session_->provenance().changed_unseen());
  }

  const CaptureRequest& request_;
  const CompileOptions plain_options_ = without_symbols_of(request_.options);
  const CompileOptions* options_ = &request_.options;  // of the open segment
  bool plainly_ = false;                               // for the next segment
  std::optional<NoCollection>& no_collection_;
  std::shared_ptr<void> rest_;  // after CPython has taken over the frames
  NewObjects new_;
  std::unique_ptr<Session> session_;       // with the evaluator
  std::unique_ptr<GraphSegment> segment_;  // the open segment, or the last segment
  std::shared_ptr<sym::ShapeEnv> env_of_first_;
  std::vector<bridge::SymbolBinding> symbols_of_first_;
  std::vector<std::unique_ptr<GraphSegment>> retired_;  // frames may still hold their symbols
  const size_t eager_autograd_calls_ = count_eager_autograd_calls();
  bridge::Capture::Scope* scope_ = nullptr;
  CompilingFlag* compiling_ = nullptr;
  AutomaticDynamic* dynamic_ = &request_.automatic_dynamic;
  Worth* worth_ = nullptr;  // of the resume point where the segment begins
  size_t known_ = 0;        // amount of feedback at the beginning of the segment
  bridge::Capture::Done begun_;
  CacheEntries* home_ = nullptr;  // owner of the segment's cache entry; nullptr: the caller keeps the entry
  const OuterHandled outer_;
  int repeated_ = 0;          // number of existing segments captured again
  bool is_repeated_ = false;  // of the open segment
  static constexpr const char* kEndedMeanwhile = "a graph break in a function that describes the parts of an object";
  int closed_frame_ = -1, frame_count_ = 0;  // the frame that kept the segment from ending
  bool stopped_ = false;                     // CPython runs the rest
  bool is_error_ = false;                    // the last graph break
  CaptureTime time_;
  std::optional<PendingError> misuse_;
  std::exception_ptr raised_;
};

}  // namespace

template <class F>
static PyRef captured(const CaptureRequest& request, F&& go) {
  const Capturing now;
  begin_loops();
  HooksOfCall hooks;
  std::vector<std::shared_ptr<CacheEntry>> cache_entries;
  PyRef result;
  {
    std::optional<NoCollection> no_collection(std::in_place);
    CaptureRun run(request, no_collection);
    result = go(run);
    cache_entries = run.cache_entries();
  }
  forget_looks();
  if (hooks.number_those_that_stay())
    for (const std::shared_ptr<CacheEntry>& entry : cache_entries) {
      entry->next = {};
      if (entry->eager_reason.empty())
        entry->eager_reason = {BreakKind::AutogradFeature, "registers a hook that stays"};
    }
  return result;
}

PyRef capture_call(const CaptureRequest& request, std::shared_ptr<CacheEntry> entry, PyObject* args, PyObject* kwargs) {
  return captured(request, [&](CaptureRun& run) {
    // A call that advances a generator argument runs in eager mode in any case.
    const auto is_generator = [](PyObject* arg) { return PyGen_CheckExact(arg) != 0; };
    PyObject** const given = PySequence_Fast_ITEMS(args);
    if (std::any_of(given, given + PyTuple_GET_SIZE(args), is_generator)) enter_inference_apart(false);
    return run.call(std::move(entry), args, kwargs);
  });
}

PyRef capture_from(const CaptureRequest& request, const std::shared_ptr<ResumePoint>& point,
                   std::shared_ptr<CacheEntry> entry, PyRef frames, PyObject* value, PyObject* exception) {
  return captured(request, [&](CaptureRun& run) {
    return run.resume(point, std::move(entry), std::move(frames), value, exception);
  });
}

}  // namespace cresset::frontend
