// A graph segment of a call: the operators from a resume point to the next graph break, captured, compiled and run.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "bridge/capture/capture.h"
#include "frontend/cache_entries/cache_entry.h"
#include "frontend/cache_entries/compile_options.h"
#include "frontend/guards/shape_profile.h"
#include "frontend/replay/reconstruction.h"
#include "frontend/session/session.h"
#include "sym/explain.h"

namespace cresset::frontend {

// Whether all programs keep the texts of their graphs, for cresset.report.
extern std::atomic<bool> keeps_texts;

class GraphSegment {
 public:
  // variant: the cache entry with its state, args and kwargs.
  GraphSegment(const CompileOptions& options, std::shared_ptr<CacheEntry> entry, ShapeProfile* profile);
  ~GraphSegment() { entry_->guards.end_capture(); }

  // Makes the arguments take part in the capture. Tensors keep their identity; symbolic ints are new objects in
  // given_args() and given_kwargs(). Throws CaptureAbort when an argument cannot take part.
  void enter(PyObject* args, PyObject* kwargs);
  PyObject* given_args() const { return given_args_.get(); }
  PyObject* given_kwargs() const { return given_kwargs_.get(); }
  // given_args(), which the segment then no longer keeps.
  PyRef take_given_args() {
    args_ = {};
    return std::move(given_args_);
  }

  bridge::Capture& capture() { return *capture_; }
  const std::shared_ptr<CacheEntry>& entry() const { return entry_; }
  bool is_repeated = false;  // an equal segment is kept already: not counted
  const CallLeaves& leaves() const { return leaves_; }
  // Restores plain numbers in the caller's containers. Called when the segment has ended, before any other code runs.
  bool places_symbols() const { return placed_.any(); }
  void take_back_numbers() { placed_.take_back(); }
  // Settles the tensors in the result of the operation at which the segment ended; nullptr: no result.
  void settle_native_results(PyObject* value) const;
  // Called when another segment begins: tensors are released as in the program.
  void retire();
  // Visits the objects of the segment and of its cache entry.
  int visit(visitproc visit, void* arg) const;
  // Records why the segment cannot serve later calls; the first reason counts.
  void refuse(BreakReason why);
  bool refused() const { return !entry_->eager_reason.empty(); }

  // ---- The end. Reconstructions are built while the capture is open; session: nullptr for a traced segment.

  void begin_reconstructions(Session* session);
  ReconstructionBuilder& builder() { return *builder_; }
  // Called after the last reconstruction. `before`: tensors created later are temporaries of an operation in progress.
  // Returns why later calls cannot be served; empty when they can.
  BreakReason end_reconstructions(uint64_t before);
  // Compiles the captured graph and runs it: every tensor is real afterwards. If compilation fails, the operators run
  // individually. Throws PythonError for misuse (a marked dimension which must be static), with every tensor real.
  void compile_and_run();
  // Whether the function left its argument containers unchanged.
  bool leaves_containers(PyObject* args, PyObject* kwargs) const;

 private:
  void note_fixed(const at::Tensor& tensor, const std::string& name, const std::vector<bridge::DimMark>& marks);
  void add_bases();
  void add_held_by_tracebacks();
  void add_held_by_arguments();
  void add_temporaries(uint64_t since);
  void specialize_inputs();
  bool stored_elsewhere(uint64_t before);
  std::vector<at::Tensor> run_compiled(bridge::Captured captured);
  void run_once(bridge::Captured captured);
  void count() const;

  const CompileOptions& options_;
  std::shared_ptr<CacheEntry> entry_;
  ShapeProfile* profile_;
  std::shared_ptr<bridge::Capture> capture_;
  CallLeaves leaves_;
  PyRef args_, kwargs_, given_args_, given_kwargs_;
  std::vector<sym::FixedSize> fixed_;
  PlacedNumbers placed_;                                 // in the caller's containers
  std::vector<std::pair<const ArgSpec*, PyRef>> texts_;  // substitutes for strings in args and state
  std::unique_ptr<ReconstructionBuilder> builder_;
  std::vector<const c10::TensorImpl*> floats_;  // proxy tensors of float arguments: their holders hold a number
};

}  // namespace cresset::frontend
