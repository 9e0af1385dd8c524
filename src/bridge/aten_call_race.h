// A prepared call with several ways to run it, of which a race picks one.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "bridge/aten_call.h"
#include "bridge/epilogue.h"
#include "bridge/library_race.h"
#include "bridge/result_memory.h"

namespace cresset::bridge {

// Derived: enum-like ways, `void run_way(Way, BoundContext&)`. Way 0 is ATen's default and takes everything.
template <class Derived, class Way>
class RacedCall : public ExternKernel {
 public:
  void run(BoundContext& context) override {
    const RaceEntry::Pick pick = race_->pick();
    if (!pick.timed) [[likely]]
      return self().run_way(ways_[pick.candidate], context);
    run_timed(pick.candidate, context);
  }

 protected:
  void enter_race(const std::string& key, std::vector<Way> ways, double work) {
    std::vector<std::string> names;
    for (const Way way : ways) names.emplace_back(Derived::name_of(way));
    ways_ = std::move(ways);
    work_ = work;
    race_ = &LibraryRace::get().entry(key, names);
  }
  bool is_decided() const { return race_->winner() >= 0; }
  // What was allocated beside the arena, for the race.
  void note_extra(const PlaceResults& placed) { missed_ = placed.missed(); }
  // Likewise. Whether the plan will not have room for it: it is asked for none by a way that may lose the race.
  bool has_no_room(BoundContext& context, const PlaceResults& placed) {
    note_extra(placed);
    return is_decided() && !context.want_gap(placed);
  }

 private:
  Derived& self() { return static_cast<Derived&>(*this); }

  void run_timed(int candidate, BoundContext& context) {
    using Clock = std::chrono::steady_clock;
    missed_ = 0;
    const auto begin = Clock::now();
    try {
      self().run_way(ways_[candidate], context);
    } catch (...) {
      race_->abandon(candidate);
      if (candidate == 0) throw;
      // A library that refuses must not be the one to raise: ATen's way decides whether the call is wrong.
      self().run_way(ways_[0], context);
      race_->disqualify(candidate);
      return;
    }
    race_->record(candidate, std::chrono::duration<double>(Clock::now() - begin).count(), work_, missed_);
  }

  std::vector<Way> ways_;
  RaceEntry* race_ = nullptr;
  double work_ = 1;
  size_t missed_ = 0;  // bytes, of the last call
};

// How a matrix lies in memory, for the key of a class: n rows, t columns, s otherwise.
char layout_letter(const BoundSlot& slot);
char dtype_letter(at::ScalarType dtype);

// mkldnn::_linear_pointwise: post(x @ w.t() + bias), when this torch has it with the signature known here. `w` as it
// is, or as onednn_linear_weight() lays it out.
bool has_onednn_linear();
at::Tensor onednn_linear_weight(const at::Tensor& w);
at::Tensor onednn_linear(const at::Tensor& x, const at::Tensor& w, const std::optional<at::Tensor>& bias,
                         const Epilogue* post);

}  // namespace cresset::bridge
