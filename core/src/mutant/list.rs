//! The bugs.
mutants! {
    /// The state machine takes the inputs of the fast path as if they came now.
    ReplayedLater in_tables,
    /// Nobody takes back what was asked for on the fast path when its caller has gone.
    FastAcquireKept in_tables,
    /// A hold of the fast path isn't confirmed after a failover.
    FastHoldNotConfirmed in_tables,
    /// A hold of the fast path stays when its client closes.
    FastHoldNotClosed in_tables,
    /// The state machine doesn't hear of a release that is under way on the fast path.
    FastReleaseForgotten in_tables,
    /// Two answers on one connection are exchanged.
    AnswersExchanged,
    /// The grant of a request without a place is believed to have put those who came behind it into the queue.
    FastPlaceBelieved in_tables,
    /// A reader that comes behind a grant enters beside it, past a writer that waits.
    LaterReaderEnters in_tables,
    /// Of the readers of one place only one enters.
    ReaderEntersAlone in_tables,
    /// A waiter that was notified of one lock and can't use that, because another is busy, notifies nobody.
    SeveralHintKept in_tables,
    /// A waiter that asks for several locks, and was dropped as a dead one at a free lock, notifies nobody of that.
    SeveralDeadNotPassedOn in_tables,
    /// A client that asks for several locks doesn't keep its waiters alive that stand at another one of them.
    SeveralLeftToDie in_tables,
    /// A waiter whose other lock is kept for another one gives up what is kept for it before that.
    SeveralClaimsGivenUp in_tables,
    /// A lock whose clock is broken refuses, and those before it stay taken.
    SeveralTakenKept in_tables,
    /// A gate without a living mark is joined.
    EmptyGateJoined in_tables,
    /// A newcomer joins past a first waiter of another kind.
    NewcomerJoinsPastWriter in_tables,
    /// The claim of a waiter counts against itself.
    ClaimTakesPermit in_tables,
    /// One permit more than the limit is given.
    PermitTooMany in_tables,
    /// Who asks for more permits than those inside is refused by their number.
    OthersLimitCounts in_tables,
    /// A reader that joins has a fence of its own.
    JoinerHasOwnFence in_tables,
    /// The marks of an earlier period stay.
    OldMarksKept in_tables,
    /// A renewal shortens a mark.
    MarkShortened in_tables,
    /// A waiter that leaves keeps the permit that was kept for it.
    LeaverKeepsPermit in_tables,
    /// A release leaves the end of the gate as it was.
    GateOutlivesMarks in_tables,
    /// A mark that has ended counts as one that lives.
    EndedMarkLives in_tables,
    /// The gate ends with the mark that was written last.
    GateNotOfLast in_tables,
    /// A reader is confirmed in another period than its own.
    AnyPeriodConfirms in_tables,
    /// Nobody is told when a permit that is kept for a waiter comes free again.
    LapsedClaimNotNotified in_tables,
    /// Readers that wait are not let in beside one that entered.
    ReadersNotLetIn in_tables,
    /// A plain waiter that gives up lets nobody in that it has stopped.
    LeaverStopsReaders in_tables,
    /// A reader that takes over a hold has what is left of it, too.
    AdoptedEndKept,
    /// A reader that takes over a hold, or enters beside one, stays in the queue.
    AdopterKeepsPlace,

    // One server.
    /// A release deletes whatever is there.
    ReleaseUnowned,
    /// A confirmation doesn't look at the owner.
    ConfirmUnowned,
    /// A confirmation doesn't look for a newer vote.
    ConfirmOlder,
    /// An extension doesn't look for a newer vote.
    ExtendOlder,
    /// An extension sets the expiry also where more remains.
    ExtensionShortens,
    /// A vote may repeat the fence that is there.
    VoteRepeats,
    /// An acquire that finds its own value, or the one it adopts, returns the fence there instead of a vote.
    OldFence,
    /// A server that lost its data votes at once.
    NoQuarantine,
    /// The marker of a quorum that has never voted refuses clients of one server.
    MistakeLocksOut in_tables,
    /// A marker goes by itself although its server has voted.
    VoteLetsMarkerGo in_tables,
    /// A marker goes by itself although its clients ask for it.
    MarkerNotKept in_tables,
    /// A waiter that joins the queue marks nothing: neither the fence nor the lock's value.
    WaiterNotMarked,
    /// A waiter that stands in the queue already doesn't mark the lock's value again.
    KnownWaiterNotMarked in_tables,
    /// A value that is written again doesn't show that a client waits.
    WaitersForgotten in_tables,
    /// A renewal that shows the fence writes the value again.
    RenewalRewrites,
    /// The value of another library is written behind.
    ForeignAnnotated in_tables,
    /// A clock gives the same fence again.
    FenceRepeats,
    /// A clock gives more fences in a millisecond than there are.
    FenceOverflows in_tables,
    /// A clock gives a fence below the one that the client has seen.
    FloorIgnored in_tables,
    /// A transaction takes a lock that is kept for a waiter.
    TransactionTakesClaim,
    /// What a transaction was refused is believed to be done.
    RefusedTransactionBelieved in_tables,
    /// What a transaction has taken is kept, although the acquire ends without a grant.
    TakenKept in_tables,
    /// A release whose answer nobody reads is done without the script.
    UnawaitedReleaseShort in_tables,
    /// A client forgets the fences that it has seen in a slot.
    SeenFencesForgotten,
    /// The time of the node before is no floor for the fences of the next one.
    SucceededIgnored,
    /// A confirmation behind a failover leaves the clock as it is.
    ConfirmRaisesNothing in_tables,
    /// A proposal becomes the fence, however far it is from the server's clock.
    FarProposalBelieved in_tables,

    // The vote.
    /// N / 2 servers decide.
    SmallQuorum,
    /// The largest of q votes is the fence, although no majority voted it or confirmed it.
    NoWriteBack,
    /// A vote above the fence counts for it.
    VoteAboveCounts,
    /// The rounds of one acquisition share an owner value.
    OwnerReused,
    /// A round that a majority attests is granted although its ttl has passed.
    LateGrant,
    /// A confirmation that fails makes an acquire without an answer a refused one.
    ConfirmationSettlesAcquire in_tables,
    /// An observer of an election believes a term that is smaller than one that it saw.
    ObserverGoesBack in_tables,
    /// An observer believes a look that is answered behind a later one.
    EarlierLookBelieved,
    /// A vote that comes after the grant is undone.
    LateVoteReleased,
    /// A failed round is not undone where its acquire has not been answered, and its late success stays.
    LateSuccessKept,

    // The hold.
    /// Validity is counted from the reply that granted the lock.
    GrantValidFromReply,
    /// Validity is counted from the reply that confirmed an extension.
    ExtensionValidFromReply,
    /// Nothing is taken off a ttl for drifting clocks.
    NoDrift,
    /// What an extension by a time asks for is not raised by what drift takes off.
    DriftTwice,
    /// An extension counts although the old validity has ended.
    LateExtension,
    /// Answers to an earlier extension count for the one under way.
    EarlierRoundCounts,
    /// A renewal waits for an extension that asks for less.
    ExtendDelaysRenewal in_tables,
    /// A round that timed out is forgotten, and its late answers with it.
    TimedOutForgotten,
    /// A round that is confirmed late counts from the sending of the one under way.
    EarlierRoundFromLatest,
    /// A round that is confirmed late counts a server that has refused a later one.
    EarlierYesStands in_tables,
    /// A refusal in a round before the last confirmed one is a loss.
    StaleRefusal in_tables,
    /// A round that reaches further than the one confirmed behind it is forgotten.
    LongerRoundForgotten in_tables,
    /// A missing key is written again before a majority has confirmed the extension.
    HealWithoutMajority,
    /// A missing key is written again also where an acquire may still come, or the vote was released.
    HealOvertakes,
    /// A heal that has no answer so far is not kept in mind.
    HealForgotten in_tables,
    /// A renewal shrinks what a longer extension has left.
    RenewalShortens,
    /// The handle still shows that it is valid while its release is under way.
    ValidWhileReleasing,
    /// The handle still shows that it is valid after `max_hold`.
    MaxHoldIgnored,
    /// A key that is missing on a single server is written again, though nothing says that a failover lost it.
    DeletedKeyHealed in_tables,
    /// A key that a failover of a single server in quarantine has lost is not written again.
    LostKeyNotHealed,
    /// A heal does not overwrite a claim, which a waiter's leaving may make where a failover lost the hold.
    ClaimStopsHeal in_tables,
    /// A confirmation after a failover asks for the ttl alone, though the hold was extended further.
    LostExtensionIgnored in_tables,
    /// An extension that a server has read ahead of a heal, and that is answered behind it, ends the hold.
    RefusalFromBeforeHeal in_tables,
    /// A hold is not confirmed after a failover.
    FailoverIgnored,
    /// An extension that was sent before a failover confirms a hold after it.
    EarlierReplidConfirms in_tables,
    /// A grant by votes from before a failover is not confirmed after it.
    EarlierReplidGrants in_tables,
    /// The pause between two tries of an extension grows with the ttl without bound, and no timer cuts it short.
    ExtendOutlasts,
    /// A server that did not answer an extension counts as one that refused it.
    SilenceRefuses,
    /// A connection stays with the old primary when another one has found its successor.
    ReplidNotShared,
    /// A connection waits to try again although another one was made since it failed.
    BackoffOutlastsHandshake in_tables,
    /// An old primary whose handshake takes longer than that of its successor counts as the successor.
    OldPrimaryFollows in_tables,
    /// A replication id that was left comes back at once.
    LeftReplidReturns in_tables,
    /// A replication id that was left, and came back, has no quarantine.
    LeftReplidVotes in_tables,
    /// A primary that sentinels name counts also where its config epoch was left.
    EpochIgnored in_tables,
    /// A server votes for a client whose handshake showed an earlier replication id.
    EarlierReplidVotes,
    /// A fence is proposed by the client's wall clock.
    WallClockProposed in_tables,
    /// A vote of our own that is above the fence counts as another client's.
    OwnVoteAccused in_tables,
    /// A vote that an acquire of ours without an answer may have won counts as another client's.
    UnansweredVoteAccused in_tables,
    /// One server of several that voted later proves another hold.
    LoneVoteProves in_tables,
    /// A fence above ours proves nothing.
    HigherFenceIgnored in_tables,

    // The queue on a server.
    /// A newcomer of a fair lock takes a free lock although a client waits.
    FairNewcomerPasses,
    /// A fair lock is not kept for its first waiter.
    FairPassed,
    /// A waiter may be passed however long it has waited.
    PatientPassed,
    /// The waiters of a dead process are notified.
    DeadHeadNotified,
    /// A look doesn't prolong a client's life.
    LifeNotProlonged,
    /// A waiter that looks goes to the tail.
    LookLosesPlace,
    /// A waiter that was notified, and came too late, goes to the tail.
    PlaceForgotten,
    /// A place that others wait in, too, stays where it was with a grant.
    GrantKeepsPlace,
    /// An acquire that may only take over what was handed over takes a free lock, too.
    AdoptsAnything in_tables,
    /// A waiter that has the lock stays in the queue.
    WinnerStaysQueued,
    /// A notified waiter stays in the queue.
    NotifiedStaysQueued,
    /// The clients' lives count as waiters.
    RankCountsClients,
    /// The second waiter is not notified when to look after the first.
    SecondNotNotified,
    /// A lock is kept for a waiter for longer than the claim window.
    ClaimOutlasts,
    /// Anybody may take a lock that is kept for a waiter.
    ClaimIsAnybodys,
    /// Not even the waiter for which a lock is kept may take it.
    OwnClaimRefused,
    /// A lock is kept for a waiter where other servers have a say, too.
    QuorumClaims,
    /// A lock is kept from newcomers where other servers have a say, too.
    QuorumBars,
    /// A release notifies nobody.
    ReleaseNotifiesNobody,
    /// A hint for a waiter that is gone is passed on, however often.
    EveryHintPassed in_tables,
    /// A notified waiter that leaves doesn't pass its hint on.
    LeaverKeepsHint,
    /// A waiter for which the lock is kept, and that leaves, doesn't give it up.
    LeaverKeepsClaim,

    // The record of a job.
    /// A job that is done begins again.
    DoneRunsAgain in_tables,
    /// A request for an attempt that comes twice counts twice.
    AttemptCountedTwice in_tables,
    /// One attempt more than allowed begins.
    OneAttemptTooMany in_tables,
    /// An attempt begins before its retry delay has passed.
    RetryDelayIgnored in_tables,
    /// Anybody ends the attempt that runs.
    AnybodysAttemptEnded in_tables,
    /// An owner ends an attempt with the fence of an earlier one.
    OlderAttemptEnds in_tables,
    /// Whether an attempt's end is noted is decided by its lease.
    LeaseDecides in_tables,
    /// The release of a lost hold undoes its attempt.
    LostAttemptGivenBack in_tables,
    /// The holder believes in the grace, too.
    GraceBelieved in_tables,
    /// A lock is kept after its release with the value of its owner.
    KeptForItsOwner in_tables,
    /// The work of a scheduled time begins again when it is asked for again.
    ScheduledTimeBeginsTwice in_tables,
    /// A scheduled time begins after a later one.
    EarlierScheduledTimeBegins in_tables,
    /// A scheduled time begins however long ago it is.
    LateScheduledTimeBegins in_tables,
    /// A scheduled time begins however far ahead it is.
    FarScheduledTimeBegins in_tables,

    // The local queue of a process.
    /// Waiters of a fair lock share one place.
    FairSharesPlace in_tables,
    /// The first of a local queue leaves, and no other waiter becomes the first.
    FirstRoleKept,
    /// A waiter that becomes the first without a place on the servers waits until the lock would be free at best.
    FirstRoleNotQueued in_tables,
    /// A grant takes a shared place out of the queue, and no waiter queues it again before it becomes the first.
    SharedPlaceDropped in_tables,
    /// A waiter that becomes the first trusts that the lock is free no sooner than its ttl ends.
    FirstRoleTrustsTtl,
    /// A waiter fails, and the others of its local queue don't learn of it.
    FailureKept in_tables,
    /// A waiter can't make use of its role, and no other takes it.
    YieldKept in_tables,
    /// A hint finds nobody although its receiver waits.
    HintMissed,
    /// A waiter that becomes the first at once doesn't listen.
    FirstRoleDoesNotListen in_tables,
    /// The first of a local queue gets another role, and takes it.
    FirstRoleTaken in_tables,    /// Behind a failover the clock may give fences below that of a hold.
    ClockNotRaised in_tables,
    /// The note of a lost hold proves it.
    LostEntryProves in_tables,
    /// A note whose fence is above the time of the note proves a hold.
    ClockAheadProves in_tables,
    /// The note of a reader proves to a reader that it was not alone.
    ReaderProvesToReader in_tables,
    /// A clock whose last fence is below ours excludes another hold.
    LostClockExcludes in_tables,
    /// A server that didn't grant our hold excludes another one.
    AnotherServerExcludes in_tables,
    /// A server that has a replica excludes another hold.
    OldServerExcludes in_tables,
    /// A failover behind the grant is no reason to suspect a loss.
    FailoverExcludes in_tables,
    /// The history is asked although an earlier release of ours may have been done.
    ProofWhileUnanswered in_tables,

    // A waiter.
    /// A waiter that is notified of releases doesn't look by itself.
    NoLook,
    /// A holder of another library is taken for one that reports its release.
    ForeignTrusted,
    /// Nobody looks when the holder's key expires.
    ExpiryUnnoticed,
    /// A hint that comes while a round is under way is lost.
    HintDuringRoundLost,
    /// The second doesn't look after the first.
    NextIgnored,
    /// A hint of fewer than a majority is no reason to try.
    MinorityIgnored in_tables,
    /// A notification about undoing a round whose votes were split makes everybody try again.
    SplitWakes in_tables,
    /// A notification from a server that voted in vain makes a waiter try again.
    UndoneWakes,
    /// A subscription that begins, or breaks off, is no reason to look.
    ListeningIgnored in_tables,
    /// A waiter that gives up stays in the queue.
    LeaverStays,
    /// A waiter that leaves while there is no connection stays in the queue after the response timeout.
    LeaveCancelledEarly in_tables,
    /// A waiter that gives up leaves a place in the queue that another of its process had enqueued.
    EnqueuedByAnother,
    /// A waiter that has the lock stays in the queues of servers that had no say in it.
    WinnerNotTakenOut,
    /// A client closes, and operations without an answer are not undone.
    CloseLeavesSent,
    /// An acquire without an answer, on a connection that is left, is not undone there.
    LateAcquireKept,
    /// What a silent socket may still carry is undone after half a second, when that socket may be given up.
    UndoneOnceSilent in_tables,
    /// A release that overtook a heal is over when it has undone an earlier one.
    SecondHealKept in_tables,
    /// The first extension on a connection waits until the server has asked for the script.
    FirstExtensionByHash in_tables,
    /// The first release on a connection waits until the server has asked for the script.
    FirstReleaseByHash in_tables,
    /// A waiter that gives up stays where an earlier round, without an answer so far, enqueues it.
    LeaverOvertaken in_tables,
    /// A place that nobody uses any more stays where an earlier round, without an answer so far, enqueues it.
    UnusedPlaceKept in_tables,
    /// A waiter that gives up is looked for in the queues for a ttl, and may be enqueued later.
    PlaceExpiresWithKey in_tables,
    /// The place of a waiter that had the lock is looked for in the queues for a ttl, and may be enqueued later.
    HoldersPlaceExpiresWithKey in_tables,
    /// A grant to a waiter of a shared place makes its process forget that a server which didn't vote has the place, too.
    SharedPlaceForgotten in_tables,
    /// A server that enqueues a waiter after its grant keeps it.
    LateEnqueueKept,
    /// A waiter that has the lock stays where another of its process has enqueued their place behind the vote.
    LateCompanionKept in_tables,
    /// A refusal that is received after a grant gives the place the arrival that the grant has used up.
    UsedPlaceNamed in_tables,
    /// The next waiter in a place names the arrival of the one that had the lock.
    NextKeepsPlace,
}
