// One piece of a call: what is captured from one point on, until it ends, is compiled and has run.
#pragma once

#include <memory>
#include <optional>

#include "bridge/capture.h"
#include "frontend/compiled_function.h"
#include "frontend/session.h"
#include "sym/explain.h"

namespace cresset::frontend {

class Piece {
 public:
  // variant: with its state, args and kwargs.
  Piece(const CompileOptions& options, std::shared_ptr<Variant> variant, ShapeProfile* profile);
  ~Piece() { variant_->facts.end_capture(); }

  // The arguments take part from now on: tensors under their own identity, symbolic ints as new objects, in
  // given_args() and given_kwargs(). Throws CaptureAbort when one cannot.
  void enter(PyObject* args, PyObject* kwargs);
  PyObject* given_args() const { return given_args_.get(); }
  PyObject* given_kwargs() const { return given_kwargs_.get(); }
  // given_args(), which the piece does not keep any longer.
  PyRef take_given_args() {
    args_ = {};
    return std::move(given_args_);
  }

  bridge::Capture& capture() { return *capture_; }
  const std::shared_ptr<Variant>& variant() const { return variant_; }
  bool is_repeated = false;  // one like it is kept: not counted
  const CallLeaves& leaves() const { return leaves_; }
  // The caller's containers hold plain numbers again; when the piece has ended, before anything else runs.
  bool places_symbols() const { return placed_.any(); }
  void take_back_numbers() { placed_.take_back(); }
  // What came of an operation at which it ended; nullptr: nothing.
  void settle_native_results(PyObject* value) const;
  // When another one begins: the call lets go of tensors as the program does.
  void retire();
  // The objects that it holds, and its variant.
  int visit(visitproc visit, void* arg) const;
  // Why later calls cannot be served by it; the first reason counts.
  void refuse(std::string why);
  bool refused() const { return !variant_->eager_reason.empty(); }

  // ---- The end. Recipes are made while the capture is open; session: nullptr when it is traced.

  void begin_recipes(Session* session);
  RecipeBuilder& recipes() { return *builder_; }
  // After the last recipe. `before`: tensors made later are temporaries of an operation in progress. Says why later
  // calls cannot be served; empty when they can.
  std::string end_recipes(uint64_t before);
  // Compiles what was captured and runs it: every tensor is real afterwards. When it cannot be compiled, the operators
  // are run one by one. Throws PythonError for misuse (a marked dimension that must be static), with everything real.
  void compile_and_run();
  // Whether the function left its argument containers as they were given.
  bool leaves_containers(PyObject* args, PyObject* kwargs) const;

 private:
  void note_fixed(const at::Tensor& tensor, const std::string& name, const std::vector<bridge::DimMark>& marks);
  void add_bases();
  void add_held_by_tracebacks();
  void add_held_by_arguments();
  void add_temporaries(uint64_t since);
  void pin_inputs();
  bool stored_elsewhere(uint64_t before);
  std::vector<at::Tensor> run_compiled(bridge::Captured captured);
  void run_once(bridge::Captured captured);
  void count() const;

  const CompileOptions& options_;
  std::shared_ptr<Variant> variant_;
  ShapeProfile* profile_;
  std::shared_ptr<bridge::Capture> capture_;
  CallLeaves leaves_;
  PyRef args_, kwargs_, given_args_, given_kwargs_;
  std::vector<sym::FixedSize> fixed_;
  PlacedNumbers placed_;                                 // in the caller's containers
  std::vector<std::pair<const ArgSpec*, PyRef>> texts_;  // of args and state: what stands for them
  std::unique_ptr<RecipeBuilder> builder_;
  std::vector<const c10::TensorImpl*> floats_;  // stand-ins of float arguments: whoever holds them holds a number
};

}  // namespace cresset::frontend
