// Autotuning: the fastest library for an operator is measured, not assumed. Calls of an undecided class run its
// candidates in turn, timed. These are real calls with right results, so measuring costs no extra work. Decisions are
// kept in memory and on disk, by machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace cresset::bridge {

// A class of calls: an operator, dtype and rounded shape. Lives as long as the process.
class AutotuneEntry {
 public:
  AutotuneEntry(std::string key, std::vector<std::string> candidates);

  struct Pick {
    int candidate;
    bool timed;  // the caller measures and calls record()
  };
  Pick pick() {
    const int winner = winner_.load(std::memory_order_acquire);
    if (winner >= 0) [[likely]]
      return {winner, false};
    return pick_undecided();
  }
  // `work`: amount of computation, in any unit comparable between calls of the class. `extra`: bytes allocated beside
  // the arena.
  void record(int candidate, double seconds, double work, size_t extra = 0);
  void abandon(int candidate);     // a timed call which raised
  void disqualify(int candidate);  // raised where the default did not: never picked again

  // -1: undecided.
  int winner() const { return winner_.load(std::memory_order_acquire); }
  const std::string& key() const { return key_; }
  const std::vector<std::string>& candidates() const { return candidates_; }

 private:
  friend class Autotuner;
  struct Lane {
    int started = 0, finished = 0;
    double best = 0;     // seconds for a unit of work
    double seconds = 0;  // of this round
    size_t extra = 0;    // bytes, maximum of a round
  };
  Pick pick_undecided();
  int rounds_of(const Lane& lane) const;
  void decide_if_complete();
  void decide();  // under mutex_

  const std::string key_;
  const std::vector<std::string> candidates_;
  std::mutex mutex_;
  std::vector<Lane> lanes_;
  std::atomic<int> winner_{-1};
};

class Autotuner {
 public:
  static Autotuner& get();

  // The entry of a class. Candidate 0 is ATen's default; it wins at once when it is alone or under CRESSET_NO_AUTOTUNE.
  // The names identify candidates in remembered decisions.
  AutotuneEntry& entry(const std::string& key, const std::vector<std::string>& candidates);

  void save();   // writes decisions made since the last time; atomic against other processes
  void reset();  // forgets all memory, so the next entry reads the disk again (for tests)
  int64_t decided() const;
  std::string report() const;  // readable text with a line for each class

 private:
  friend class AutotuneEntry;
  Autotuner();
  void load();
  void on_decision();

  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<AutotuneEntry>> entries_;
  std::vector<std::unique_ptr<AutotuneEntry>> retired_;      // by reset(); callers may still hold them
  std::unordered_map<std::string, std::string> remembered_;  // key -> candidate name
  bool loaded_ = false;
  std::atomic<bool> dirty_{false};
  std::atomic<int64_t> last_save_ms_;
};

// A rounded size for the key of a class: its binary logarithm, in half steps.
int size_class(int64_t size);

}  // namespace cresset::bridge
