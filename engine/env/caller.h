// Who waits for the call that a thread runs. A face may answer a caller before the call has come
// back (a signal ended its wait): then the call changes nothing any more, or it would come after
// changes that were made when everybody thought it over. Thread: each has its own caller, or none.
#pragma once

namespace kvsyncfs {

class Caller {
 public:
  virtual ~Caller() = default;

  /// The call is about to change something, and waits for nothing before that. False: its caller
  /// was told that it failed, so it has to.
  virtual bool begin_change() = 0;

  /// Of the calls that this thread makes from now on; null: nobody is told anything before its end.
  static void set_current(Caller* caller) { current() = caller; }
  /// As above, for the current one.
  static bool may_change() { return current() == nullptr || current()->begin_change(); }

 private:
  static Caller*& current() {
    static thread_local Caller* caller = nullptr;
    return caller;
  }
};

}  // namespace kvsyncfs
