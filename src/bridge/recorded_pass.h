// Backward passes whose results want gradients themselves (create_graph=True).
//
// Compiled code has no derivative: such a pass runs the forward part of the joint graph operator by operator, through
// autograd, from the tensors that the call was given, with the history that they had then; autograd makes the gradients
// (recorded_forward.h). What it records is what eager's pass records. What does not depend on what gradients are wanted
// of (a dropout's mask) is taken from what the call saved.
//
// Where autograd cannot (it has no derivative of an operator of ours), the backward part is run in the same way. That
// does not know of functions of Python's in the record, nor that a checkpoint's values stand for those of the forward
// pass: there an error says so.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "bridge/captured.h"
#include "bridge/gradients.h"
#include "bridge/node_ptr.h"

namespace cresset::bridge {

// Of one compiled variant.
class RecordedPass {
 public:
  // What one call leaves behind.
  struct Call {
    SavedTensors inputs;
    std::vector<torch::autograd::Edge> edges;  // where gradients of the inputs go; invalid: none are wanted
    std::vector<uint32_t> constants;           // their versions
    std::vector<int64_t> symbols;
    // By position among the graph's mutations: whether the pass has a copy of what was overwritten.
    std::vector<bool> has_copies;
    std::unordered_map<uint32_t, at::Tensor> overwritten_constants;  // those copies, with their history
  };

  // graph: the joint one, as captured.
  RecordedPass(const graph::Graph& graph, std::shared_ptr<const Backward> backward,
               const std::vector<at::Tensor>& constants, const std::unordered_map<sym::VarId, uint32_t>& slots);

  // Whether autocast, as it is on this thread, casts for an operator of the backward part.
  bool casts_apart() const;

  // saved: values of the graph that the call keeps for its backward passes.
  void set_saved(std::vector<graph::ValueId> saved) { saved_ = std::move(saved); }

  // Copies of what the call is about to overwrite and a pass needs, by position among the graph's mutations; undefined:
  // no pass needs it.
  std::vector<at::Tensor> before_writes(c10::ArrayRef<at::Tensor> inputs) const;

  Call note(c10::ArrayRef<at::Tensor> inputs, const std::vector<at::Tensor>& before, const int64_t* symbols,
            size_t count) const;

  // The gradients of the leaves. layouts: of the tangents, which may be undefined.
  std::vector<at::Tensor> run(const Call& call, std::vector<at::Tensor> tangents,
                              const std::vector<TangentLayout>& layouts, const std::vector<at::Tensor>& saved) const;

  // What arrives at the roots that others were computed from, of these tangents.
  std::vector<at::Tensor> arriving(const Call& call, std::vector<at::Tensor> tangents,
                                   const std::vector<TangentLayout>& layouts,
                                   const std::vector<at::Tensor>& saved) const;

 private:
  template <class Give>
  std::vector<at::Tensor> interpreted(const Call& call, const std::vector<at::Tensor>& saved, Give&& give) const;
  std::vector<bool> depends_on_leaves(const Call& call) const;
  void check(const Call& call, const std::vector<bool>& read) const;
  std::vector<at::Tensor> constants_of(const Call& call) const;

  bool is_plain(const std::vector<bool>& depends) const;
  std::optional<std::vector<at::Tensor>> through_autograd(const Call& call, const std::vector<at::Tensor>& tangents,
                                                          const std::vector<at::Tensor>& saved) const;

  const std::shared_ptr<const graph::Graph> whole_;
  const graph::Graph& graph_;
  const std::shared_ptr<const Backward> backward_;
  const std::vector<at::Tensor> constants_;
  const std::unordered_map<sym::VarId, uint32_t> slots_;
  std::vector<graph::ValueId> saved_;
  std::vector<bool> needs_copies_;  // by position among the graph's mutations
  struct Castable {                 // what operators of the part are given, of those that autocast has to do with
    std::vector<c10::ScalarType> lowered;  // where it casts to its own dtype
    bool others = false;
  };
  void note_castable(graph::NodeId id);
  Castable on_cpu_, on_cuda_;
};

}  // namespace cresset::bridge
