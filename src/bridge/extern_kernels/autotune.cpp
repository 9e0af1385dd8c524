#include "bridge/extern_kernels/autotune.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "torch/version.h"

namespace cresset::bridge {
namespace {

constexpr int kFirstRounds = 2;    // of all candidates; a library may build its kernel in the first round
constexpr double kHopeless = 1.5;  // a candidate slower than the best by this factor after the first rounds is dropped
constexpr double kShortCall = 1e-3;  // seconds: below, noise weighs more and rounds are cheap
constexpr int kRounds = 4, kRoundsOfShort = 10;
constexpr double kDefaultAdvantage = 0.97;  // a challenger must win clearly
constexpr size_t kMuchExtra = 1 << 20;      // bytes
constexpr double kPriceOfMuch = 1.1;        // a slightly faster candidate is not worth much memory
constexpr int64_t kSaveIntervalMs = 5000;

int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

std::string machine() {
  std::ifstream in("/proc/cpuinfo");
  std::string line, text;
  while (std::getline(in, line) && !line.empty()) {  // the first processor's block
    for (const char* field : {"vendor_id", "cpu family", "model", "CPU part"}) {
      if (line.starts_with(field)) text += line.substr(line.find(':') + 1);
    }
  }
  return "torch " TORCH_VERSION " on" + text;
}

std::string cache_file() {
  const std::string folder = cache_folder();
  return folder.empty() ? "" : folder + "/autotune.json";
}

// Format: {machine: {key: candidate}}; an unreadable file counts as empty.
nlohmann::json read_decisions(const std::string& path) {
  const std::string text = read_file(path).value_or("");
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : nlohmann::json::object();
}

void save_at_exit() { Autotuner::get().save(); }

}  // namespace

int size_class(int64_t size) {
  if (size <= 1) return 0;
  return static_cast<int>(std::lround(2 * std::log2(static_cast<double>(size))));
}

AutotuneEntry::AutotuneEntry(std::string key, std::vector<std::string> candidates)
    : key_(std::move(key)), candidates_(std::move(candidates)), lanes_(candidates_.size()) {}

AutotuneEntry::Pick AutotuneEntry::pick_undecided() {
  const std::lock_guard lock(mutex_);
  int next = -1;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i].started >= rounds_of(lanes_[i])) continue;
    if (next < 0 || lanes_[i].started < lanes_[next].started) next = static_cast<int>(i);
  }
  if (next < 0) return {0, false};  // other threads are running the last rounds
  ++lanes_[next].started;
  return {next, true};
}

int AutotuneEntry::rounds_of(const Lane& lane) const {
  double best = std::numeric_limits<double>::infinity();
  for (const Lane& l : lanes_) {
    if (l.finished < kFirstRounds) return kFirstRounds;
    best = std::min(best, l.best);
  }
  if (lane.best > kHopeless * best) return kFirstRounds;
  return lane.seconds < kShortCall ? kRoundsOfShort : kRounds;
}

void AutotuneEntry::record(int candidate, double seconds, double work, size_t extra) {
  {
    const std::lock_guard lock(mutex_);
    Lane& lane = lanes_[candidate];
    const double cost = seconds / std::max(work, 1.0);
    if (lane.finished == 0 || cost < lane.best) {
      lane.best = cost;
      lane.seconds = seconds;
    }
    lane.extra = std::max(lane.extra, extra);
    ++lane.finished;
  }
  decide_if_complete();
}

void AutotuneEntry::abandon(int candidate) {
  const std::lock_guard lock(mutex_);
  --lanes_[candidate].started;
}

void AutotuneEntry::disqualify(int candidate) {
  {
    const std::lock_guard lock(mutex_);
    Lane& lane = lanes_[candidate];
    lane.started = lane.finished = kFirstRounds;
    lane.best = std::numeric_limits<double>::infinity();
  }
  decide_if_complete();
}

void AutotuneEntry::decide_if_complete() {
  {
    const std::lock_guard lock(mutex_);
    if (winner() >= 0) return;
    for (const Lane& lane : lanes_)
      if (lane.finished < rounds_of(lane)) return;
    decide();
  }
  Autotuner::get().on_decision();
}

void AutotuneEntry::decide() {
  int winner = 0;
  const auto cost = [&](size_t i) { return lanes_[i].best * (lanes_[i].extra >= kMuchExtra ? kPriceOfMuch : 1); };
  double best = cost(0) * kDefaultAdvantage;
  for (size_t i = 1; i < lanes_.size(); ++i) {
    if (cost(i) >= best) continue;
    best = cost(i);
    winner = static_cast<int>(i);
  }
  winner_.store(winner, std::memory_order_release);
  CRESSET_LOG(Extern, fmt::format("autotune {}: {} ({:.2f} of the default's time)", key_, candidates_[winner],
                                  lanes_[winner].best / lanes_[0].best));
}

Autotuner& Autotuner::get() {
  static Autotuner* autotuner = new Autotuner;  // never destroyed: an exit handler saves it
  return *autotuner;
}

Autotuner::Autotuner() : last_save_ms_(now_ms()) { std::atexit(save_at_exit); }

AutotuneEntry& Autotuner::entry(const std::string& key, const std::vector<std::string>& candidates) {
  const std::lock_guard lock(mutex_);
  if (!loaded_) load();
  std::unique_ptr<AutotuneEntry>& entry = entries_[key];
  if (entry != nullptr && entry->candidates_ == candidates) return *entry;
  if (entry != nullptr) retired_.push_back(std::move(entry));
  entry = std::make_unique<AutotuneEntry>(key, candidates);
  if (candidates.size() == 1 || option_flag(Option::NO_AUTOTUNE)) {
    entry->winner_ = 0;
  } else if (auto known = remembered_.find(key); known != remembered_.end()) {
    for (size_t i = 0; i < candidates.size(); ++i)
      if (candidates[i] == known->second) entry->winner_ = static_cast<int>(i);
  }
  return *entry;
}

void Autotuner::load() {
  loaded_ = true;
  if (option_flag(Option::NO_DISK_CACHE)) return;
  const nlohmann::json all = read_decisions(cache_file());
  const auto mine = all.find(machine());
  if (mine == all.end() || !mine->is_object()) return;
  for (const auto& [key, name] : mine->items())
    if (name.is_string()) remembered_[key] = name.get<std::string>();
}

void Autotuner::on_decision() {
  dirty_ = true;
  if (now_ms() - last_save_ms_ >= kSaveIntervalMs) save();
}

void Autotuner::save() {
  if (!dirty_.exchange(false) || option_flag(Option::NO_DISK_CACHE) || option_flag(Option::NO_AUTOTUNE)) return;
  last_save_ms_ = now_ms();
  const std::string path = cache_file();
  if (path.empty()) return;
  nlohmann::json all = read_decisions(path);  // other processes may have written meanwhile
  nlohmann::json& mine = all[machine()];
  if (!mine.is_object()) mine = nlohmann::json::object();
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, entry] : entries_)
      if (entry->winner() >= 0 && entry->candidates_.size() > 1) mine[key] = entry->candidates_[entry->winner()];
  }
  write_file(path, all.dump(1) + "\n");  // failure to write a cache is no error
}

void Autotuner::reset() {
  const std::lock_guard lock(mutex_);
  for (auto& [key, entry] : entries_) retired_.push_back(std::move(entry));
  entries_.clear();
  remembered_.clear();
  loaded_ = false;
}

int64_t Autotuner::decided() const {
  const std::lock_guard lock(mutex_);
  int64_t count = 0;
  for (const auto& [key, entry] : entries_) count += entry->winner() >= 0;
  return count;
}

std::string Autotuner::report() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::string> lines;
  for (const auto& [key, entry] : entries_) {
    const int winner = entry->winner();
    lines[key] = winner < 0 ? "undecided" : entry->candidates_[winner];
  }
  std::string text;
  for (const auto& [key, line] : lines) text += fmt::format("{}: {}\n", key, line);
  return text;
}

}  // namespace cresset::bridge
