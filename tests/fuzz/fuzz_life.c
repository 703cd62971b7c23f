/* fuzz_life.c - any orders at any time to a rank's life, against a model that is written down by
 * what a scheduler and a person may expect of a node
 *
 * A byte is an input: the low half says which order comes, or that the trainer gets on; the high
 * half which rank it is about, or how his work ends; the byte before says more of an Assign. The
 * trainer works on one duty at a time, and hears of orders only when it is over. */
#include "tests/fuzz/fuzz.h"

#include "libworker/node/life.h"
#include "proto/err.h"
#include "proto/wire.h"

enum { TURNS_MAX = 48 }; /* of the trainer, from any point to the end of the process */

struct rank { /* generation 0: none */
    uint64_t generation, job;
    uint32_t number;
    int recovers, has_obeyed, has_trained, is_held, is_pulling, at_step, saves;
    int code;                  /* why it is over; 0: it is not, or it went well */
    int is_over;               /* ... and that stands */
    int is_provisional;        /* ... until the scheduler says another reason */
    int has_plan, is_prepared; /* it was heard, or none comes; all that it can alone is done */
    int is_planned, is_ready, is_started, is_said, is_released, is_unfit;
    int is_late;     /* asked after its end to save what it holds */
    int is_cut;      /* by two plans, while the trainer was at it */
    int has_stopped; /* a Stop came before it was in hand ... */
    int stop_code;   /* ... with this */
    int has_failed;  /* before that, by two plans */
};

struct world {
    struct life life;
    struct rank hand, kept;
    uint64_t last; /* generation that the scheduler gave out last */
    int is_ending, is_anew;
    enum life_event first; /* LEAVE, LOST or UNFIT that ends it; LIFE_ASSIGN: none came */
    enum life_duty busy;   /* what the trainer is at; LIFE_WAIT: nothing ... */
    uint64_t works_for;    /* ... for the rank of that generation */
    int has_obeyed;        /* ... and of JOIN that part is behind him */
};

static void end(struct rank *rank, int code)
{
    if (!rank->is_over || rank->is_provisional) {
        rank->code = code;
        rank->is_over = 1;
        rank->is_provisional = 0;
    }
}

/* The scheduler, or the end of the process, has the last word on the rank in hand. */
static void release(struct rank *rank, int code, int beats_all)
{
    int was_well = rank->is_over && !rank->is_provisional && rank->code == 0;
    if (was_well || beats_all) {
        rank->code = code != 0 ? code : rank->code;
    }
    end(rank, code != 0 ? code : MS_E_ABORTED);
    rank->is_released = 1;
}

static void begin_kept(struct world *world)
{
    world->hand = world->kept;
    world->kept = (struct rank){0};
    if (world->hand.has_stopped) {
        end(&world->hand, world->hand.stop_code);
        world->hand.is_released = 1;
    } else if (world->hand.has_failed) {
        end(&world->hand, MS_E_PROTOCOL);
    }
}

/* The same rank, with a mesh to be made. */
static void go_on(struct world *world)
{
    world->kept.at_step |= world->hand.at_step && !world->hand.is_late;
    world->kept.saves |= world->hand.saves && !world->hand.is_late;
    world->kept.has_trained = world->hand.has_trained;
    world->kept.has_obeyed = world->hand.has_obeyed;
    world->kept.is_planned = world->kept.is_pulling = world->kept.has_plan = 1;
    begin_kept(world);
}

static int is_at_work(const struct rank *rank)
{
    return rank->generation != 0 && (!rank->is_over || rank->is_provisional);
}

/* ---- orders ---- */

/* May a scheduler give it, at this moment, an Assign that is new? */
static int model_has_place(const struct world *world, const struct life_input *input)
{
    const struct rank *hand = &world->hand;
    const struct rank *kept = &world->kept;
    if (world->is_ending || world->is_anew) {
        return 0;
    }
    if (kept->generation != 0 && !(input->recovers && kept->job == input->job)) {
        return 0;
    }
    if (!world->life.one_job || hand->generation == 0) {
        return 1;
    }
    int is_over_for_good = hand->is_released && kept->generation == 0;
    return hand->job == input->job && !is_over_for_good;
}

static int model_goes_on(const struct rank *hand, const struct life_input *input)
{
    int is_well = hand->is_over && !hand->is_provisional && hand->code == 0 && !hand->is_released;
    int is_same = hand->job == input->job && hand->number == input->rank;
    int is_sure_of_its_plan =
        hand->has_obeyed && input->plan_from == MS_PLAN_GIVEN && input->recovers;
    return hand->generation != 0 && is_same && (is_at_work(hand) || is_well) &&
           (hand->has_trained || is_sure_of_its_plan);
}

static int has_failed_unheard(const struct rank *hand, const struct life_input *input)
{
    return hand->generation != 0 && hand->is_over && !hand->is_provisional && hand->code != 0 &&
           (hand->is_said || !hand->is_cut) && !hand->is_released && hand->job == input->job &&
           hand->number == input->rank;
}

static void model_go_on(struct world *world, int answer)
{
    struct rank *hand = &world->hand;
    int works = !hand->is_over && (hand->is_started || !hand->is_ready);
    FUZZ_CHECK(answer == (works && !hand->is_held ? LIFE_HOLD : LIFE_TAKEN));
    hand->is_held = works;
    if (!works) {
        go_on(world);
    }
}

static void model_assign(struct world *world, int answer, const struct life_input *input)
{
    struct rank *hand = &world->hand;
    int is_old = (hand->generation != 0 && input->generation <= hand->generation) ||
                 (world->kept.generation != 0 && input->generation <= world->kept.generation);
    int has_place = model_has_place(world, input);
    FUZZ_CHECK((answer == LIFE_STALE) == is_old);
    FUZZ_CHECK((answer == LIFE_DECLINED) == (!is_old && !has_place));
    if (is_old || !has_place) {
        hand->is_released |= !is_old && world->is_anew && hand->is_over && !hand->is_provisional;
        return;
    }
    world->last = input->generation;
    if (has_failed_unheard(hand, input)) { /* the same failure, of that generation */
        FUZZ_CHECK(answer == LIFE_TAKEN && world->kept.generation == 0);
        hand->generation = input->generation;
        hand->is_said = hand->is_cut = 0;
        return;
    }
    world->kept = (struct rank){.generation = input->generation,
                                .job = input->job,
                                .number = input->rank,
                                .recovers = input->recovers,
                                .has_plan = input->plan_from == MS_PLAN_OWN};
    if (hand->generation == 0) {
        begin_kept(world);
        return;
    }
    if (model_goes_on(hand, input)) {
        model_go_on(world, answer);
        return;
    }
    FUZZ_CHECK(((answer & LIFE_INTERRUPT) != 0) == (!hand->is_over || hand->is_provisional));
    hand->is_provisional = 0; /* its own reason is the best there is */
    hand->is_held = 0;
    end(hand, MS_E_ABORTED);
    hand->is_released = 1;
}

static void model_stop(struct world *world, int answer, const struct life_input *input)
{
    struct rank *hand = &world->hand;
    if (world->kept.generation != 0 && input->generation == world->kept.generation) {
        world->kept.stop_code = world->kept.has_stopped ? world->kept.stop_code : input->code;
        world->kept.has_stopped = 1;
    } else if (hand->generation != 0 && input->generation == hand->generation) {
        int interrupts = !hand->is_over || hand->is_provisional;
        FUZZ_CHECK(((answer & LIFE_INTERRUPT) != 0) == interrupts);
        if (interrupts) { /* 0: its job has succeeded, and that is its end, too */
            end(hand, input->code);
        }
        release(hand, input->code, 0);
    } else if (hand->generation == 0 && world->life.one_job && !world->is_ending) {
        world->is_ending = 1;
    } else {
        FUZZ_CHECK(answer == LIFE_STALE);
    }
}

static void meet(struct rank *hand)
{
    hand->is_planned |= hand->has_plan && hand->is_prepared;
}

/* The rank that fails has the next number, and heard what came for that while it was held. */
static void fail_by_itself(struct world *world, int code)
{
    struct rank *hand = &world->hand;
    if (hand->is_held) {
        hand->generation = world->kept.generation;
        hand->is_released = world->kept.has_stopped; /* the last word has come before */
        hand->is_held = 0;
        world->kept = (struct rank){0};
    }
    end(hand, code);
}

static void model_plan(struct world *world, int answer, const struct life_input *input)
{
    struct rank *hand = &world->hand;
    int is_second = input->code != 0;
    if (world->kept.generation != 0 && input->generation == world->kept.generation) {
        FUZZ_CHECK(answer == (is_second || !world->kept.has_plan ? LIFE_TAKEN : LIFE_STALE));
        world->kept.has_plan = 1;
        world->kept.has_failed |= is_second;
    } else if (hand->generation == 0 || input->generation != hand->generation) {
        FUZZ_CHECK(answer == LIFE_STALE);
    } else if (is_second) {
        int interrupts = is_at_work(hand);
        FUZZ_CHECK(answer == (interrupts ? LIFE_INTERRUPT : LIFE_STALE));
        if (interrupts) {
            fail_by_itself(world, input->code);
            hand->is_cut = 1;
        }
    } else {
        int waits = !hand->is_over && !hand->has_plan;
        FUZZ_CHECK(answer == (waits ? LIFE_TAKEN : LIFE_STALE));
        hand->has_plan |= waits;
        meet(hand);
    }
}

static int holds_what_it_ended_with(const struct rank *hand)
{
    return hand->generation != 0 && hand->is_over && !hand->is_provisional && hand->code == 0 &&
           !hand->is_released && hand->has_trained && hand->recovers;
}

static void model_at_step(struct world *world, int answer, const struct life_input *input)
{
    const uint64_t generation = input->generation;
    if (world->kept.generation != 0 && generation == world->kept.generation) {
        world->kept.at_step = 1;
        world->kept.saves |= input->saves;
        FUZZ_CHECK(answer == LIFE_TAKEN);
    } else if (is_at_work(&world->hand) && generation == world->hand.generation) {
        const int is_at_it = world->hand.is_late && world->hand.is_provisional;
        world->hand.at_step = 1;
        world->hand.saves |= input->saves;
        FUZZ_CHECK(answer == (is_at_it ? LIFE_TAKEN : LIFE_STEP));
    } else if (holds_what_it_ended_with(&world->hand) && input->saves &&
               generation == world->hand.generation) { /* and saves it after all */
        world->hand.at_step = world->hand.saves = world->hand.is_late = 1;
        world->hand.is_provisional = 1;
        world->hand.is_said = 0;
        FUZZ_CHECK(answer == LIFE_TAKEN);
    } else {
        FUZZ_CHECK(answer == LIFE_STALE);
    }
}

static void model_end(struct world *world, const struct life_input *input)
{
    struct rank *hand = &world->hand;
    world->is_ending = 1;
    world->first = world->first == LIFE_ASSIGN ? input->event : world->first;
    if (hand->generation != 0) {
        release(hand, input->event == LIFE_LEAVE ? MS_E_CANCELLED : input->code,
                input->event == LIFE_LOST);
    }
}

static void order(struct world *world, const struct life_input *given)
{
    struct life_input input = *given;
    uint64_t generation = input.generation;
    struct life before = world->life;
    input.text = "a reason";
    int answer = life_apply(&world->life, &input);
    if (answer & (LIFE_STALE | LIFE_DECLINED)) {
        FUZZ_CHECK(before.state == world->life.state &&
                   before.generation == world->life.generation &&
                   before.next.generation == world->life.next.generation &&
                   (before.is_released == world->life.is_released ||
                    (world->is_anew && (answer & LIFE_DECLINED))));
    }
    switch (input.event) {
    case LIFE_ASSIGN:
        model_assign(world, answer, &input);
        break;
    case LIFE_PLAN:
        model_plan(world, answer, &input);
        break;
    case LIFE_START:
        if (!(answer & LIFE_STALE)) {
            FUZZ_CHECK(world->hand.is_ready && !world->hand.is_over && !world->hand.is_started &&
                       generation == world->hand.generation);
            world->hand.is_started = world->hand.has_trained = 1;
        } else {
            FUZZ_CHECK(!world->hand.is_ready || world->hand.is_over || world->hand.is_started ||
                       generation != world->hand.generation);
        }
        break;
    case LIFE_STOP:
        model_stop(world, answer, &input);
        break;
    case LIFE_AT_STEP:
        model_at_step(world, answer, &input);
        break;
    case LIFE_LEAVE:
    case LIFE_LOST:
        model_end(world, &input);
        break;
    default:
        break;
    }
}

/* ---- the trainer ---- */

static void tell(struct world *world, enum life_event event, int code, int anew)
{
    struct life_input input = {.event = event,
                               .generation = world->works_for,
                               .code = code,
                               .anew = anew,
                               .text = "it broke"};
    (void)life_apply(&world->life, &input);
}

static void fail(struct world *world, enum life_event event, int anew)
{
    int code = event == LIFE_PEER ? MS_E_CLOSED : MS_E_FAILED;
    struct rank *hand = &world->hand;
    tell(world, event, code, anew);
    world->is_anew |= anew;
    if (hand->is_held && !hand->is_over && event == LIFE_PEER) {
        go_on(world);
    } else if (hand->is_held && !hand->is_over) { /* it failed by itself, and says so to the next */
        fail_by_itself(world, code);
    } else if (!hand->is_over) {
        end(hand, code);
        hand->is_provisional = event == LIFE_PEER && world->busy != LIFE_DO_PLAN;
        if (event == LIFE_UNFIT) {
            hand->is_unfit = hand->is_said = hand->is_released = 1;
        }
    }
    if (event == LIFE_UNFIT) {
        world->is_ending = 1;
        world->first = world->first == LIFE_ASSIGN ? event : world->first;
    }
}

static void good_end(struct world *world, enum life_duty duty)
{
    struct rank *hand = &world->hand;
    if (hand->is_over) {
        return; /* an order was faster */
    }
    if (hand->is_held) {
        go_on(world);
    } else if (duty == LIFE_DO_TRAIN) {
        end(hand, 0);
    } else {
        hand->is_prepared = 1;
        meet(hand);
        hand->is_ready = duty != LIFE_DO_PLAN;
        hand->is_pulling = 0;
    }
}

/* He has made the plan, and goes on with the mesh. */
static void obey(struct world *world)
{
    struct rank *hand = &world->hand;
    struct life_input input = {.event = LIFE_OBEYED, .generation = world->works_for};
    FUZZ_CHECK(life_apply(&world->life, &input) == (hand->is_over ? LIFE_STALE : LIFE_TAKEN));
    hand->has_obeyed = !hand->is_over;
    world->has_obeyed = 1;
    world->busy = hand->is_over ? LIFE_WAIT : LIFE_DO_JOIN;
}

static void work_ends(struct world *world, unsigned how)
{
    static const enum life_event ends[] = {LIFE_MADE, LIFE_MADE, LIFE_FAILED, LIFE_PEER};
    struct rank *hand = &world->hand;
    enum life_duty duty = world->busy;
    int is_gone_on = world->works_for != hand->generation; /* what he did was for the last one */
    world->busy = LIFE_WAIT;
    FUZZ_CHECK(hand->generation != 0 && hand->generation == world->life.generation);
    switch (duty) {
    case LIFE_DO_PLAN:
    case LIFE_DO_JOIN:
    case LIFE_DO_PULL:
    case LIFE_DO_TRAIN:
        world->busy = duty; /* for fail() */
        if (duty == LIFE_DO_PLAN && how % 8 >= 6) {
            fail(world, how % 8 == 6 ? LIFE_UNFIT : LIFE_FAILED, how % 8 == 7);
        } else if (ends[how % 4] != LIFE_MADE) {
            fail(world, ends[how % 4], 0);
        } else {
            tell(world, duty == LIFE_DO_TRAIN ? LIFE_DONE : LIFE_MADE, 0, 0);
            good_end(world, duty);
        }
        world->busy = LIFE_WAIT;
        break;
    case LIFE_DO_STOP: /* well, or not */
        tell(world, how % 2 == 0 ? LIFE_DONE : LIFE_FAILED, how % 2 == 0 ? 0 : MS_E_FAILED, 0);
        if (!is_gone_on && hand->is_provisional) {
            end(hand, how % 2 == 0 ? 0 : MS_E_FAILED);
        }
        break;
    case LIFE_DO_HOLD:
        tell(world, LIFE_QUIET, 0, 0);
        hand->is_provisional &= is_gone_on || hand->recovers;
        break;
    case LIFE_DO_SAY:
        FUZZ_CHECK(!hand->is_said);
        tell(world, LIFE_SAID, 0, 0);
        hand->is_said = !is_gone_on && !hand->is_provisional;
        break;
    case LIFE_DO_CLEAN:
        FUZZ_CHECK(world->life.verdict.code == hand->code);
        tell(world, LIFE_OUT, 0, 0);
        *hand = (struct rank){0};
        world->is_ending |= world->life.one_job && world->kept.generation == 0;
        if (!world->is_ending && !world->is_anew && world->kept.generation != 0) {
            begin_kept(world);
        }
        break;
    case LIFE_WAIT:
    case LIFE_DO_END:
        FUZZ_CHECK(0);
    }
}

static void work_begins(struct world *world)
{
    struct rank *hand = &world->hand;
    enum life_duty duty = life_duty(&world->life);
    switch (duty) {
    case LIFE_WAIT: /* for somebody else, who has a name, and whose word leads on */
        FUZZ_CHECK(hand->generation == 0 || (hand->is_ready && !hand->is_over) ||
                   (hand->is_prepared && !hand->has_plan && !hand->is_over) ||
                   (hand->is_said && !hand->is_released));
        return;
    case LIFE_DO_PLAN:
    case LIFE_DO_JOIN:
        FUZZ_CHECK(!hand->is_over && !hand->is_ready && !hand->is_started);
        FUZZ_CHECK(!hand->is_pulling && hand->is_planned == (duty == LIFE_DO_JOIN));
        break;
    case LIFE_DO_PULL:
        FUZZ_CHECK(hand->is_pulling && !hand->is_over && !hand->is_held && !hand->is_ready);
        break;
    case LIFE_DO_TRAIN: /* what is held before it began is told so at once */
        FUZZ_CHECK((hand->is_started || hand->is_held) && !hand->is_over);
        break;
    case LIFE_DO_STOP:
    case LIFE_DO_HOLD:
        FUZZ_CHECK(hand->is_provisional);
        FUZZ_CHECK((hand->at_step && hand->recovers) == (duty == LIFE_DO_STOP));
        break;
    case LIFE_DO_SAY:
        FUZZ_CHECK(hand->is_over && !hand->is_provisional && !hand->is_said);
        FUZZ_CHECK(world->life.verdict.code == hand->code);
        break;
    case LIFE_DO_CLEAN:
        FUZZ_CHECK(hand->is_over && hand->is_said && hand->is_released);
        break;
    case LIFE_DO_END:
        FUZZ_CHECK(hand->generation == 0 && (world->is_ending || world->is_anew));
        return;
    }
    world->busy = duty;
    world->has_obeyed = 0;
    world->works_for = hand->generation;
}

static void get_on(struct world *world, unsigned how)
{
    if (world->busy == LIFE_WAIT) {
        work_begins(world);
    } else if (world->busy == LIFE_DO_JOIN && !world->has_obeyed && how % 2 == 0) {
        obey(world);
    } else {
        work_ends(world, how);
    }
}

static void judge(struct world *world)
{
    const struct life *life = &world->life;
    FUZZ_CHECK(life_waits_for(life)[0] != '\0');
    FUZZ_CHECK(life->generation == world->hand.generation);
    if (life->generation != 0) {
        FUZZ_CHECK(life->rank == world->hand.number && life->job == world->hand.job);
        FUZZ_CHECK(life->at_step == world->hand.at_step && life->saves == world->hand.saves);
        FUZZ_CHECK(life->recovers == world->hand.recovers);
    }
    FUZZ_CHECK(life->leaves ? life->leave_event == world->first : world->first == LIFE_ASSIGN);
    FUZZ_CHECK((life->next.generation == world->kept.generation) || life->state == LIFE_LEAVING);
    FUZZ_CHECK((life->generation != 0) ==
               (life->state >= LIFE_PLANNING && life->state <= LIFE_FINISHING));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum life_event orders[] = {LIFE_ASSIGN, LIFE_ASSIGN, LIFE_START, LIFE_PLAN,
                                             LIFE_STOP,   LIFE_STOP,   LIFE_LEAVE, LIFE_LOST};
    static const int codes[] = {0, MS_E_CANCELLED, MS_E_FAILED, MS_E_CLOSED};
    static const int plan_codes[] = {0, 0, 0, MS_E_PROTOCOL};
    static const uint32_t plans[] = {MS_PLAN_OWN, MS_PLAN_RANK_0, MS_PLAN_OWN, MS_PLAN_GIVEN};
    struct world here = {.busy = LIFE_WAIT};
    struct world *world = &here;
    if (size == 0) {
        return 0;
    }
    world->life.one_job = data[0] & 1;
    for (size_t i = 1; i < size; i++) {
        unsigned high = data[i] >> 4;
        unsigned low = data[i] & 15;
        unsigned more = data[i - 1];
        enum life_event event = low < 8 ? orders[low] : LIFE_ASSIGN;
        uint64_t near = world->kept.generation != 0 && high % 4 >= 2 ? world->kept.generation
                                                                     : world->hand.generation;
        uint64_t generation = event == LIFE_ASSIGN ? world->last + high % 3
                              : high % 4 == 3      ? high
                                                   : near;
        if (low >= 8 && low < 15) {
            get_on(world, high);
        } else if (low == 15) {
            order(world, &(struct life_input){.event = LIFE_AT_STEP,
                                              .job = 7,
                                              .generation = generation,
                                              .saves = (more >> 2) & 1});
        } else if (event == LIFE_LEAVE && high != 1) {
            get_on(world, high); /* now and then is enough */
        } else if (event != LIFE_ASSIGN || generation != 0) {
            int code = event == LIFE_LOST   ? MS_E_UNREACHABLE
                       : event == LIFE_PLAN ? plan_codes[high >> 2]
                                            : codes[high >> 2];
            /* ranks of two jobs have two numbers, and now and then the other one */
            order(world, &(struct life_input){.event = event,
                                              .job = 7 + (high >> 3),
                                              .generation = generation,
                                              .rank = (7 + (high >> 3) + (more % 8 == 5)) & 1,
                                              .recovers = (more >> 1) & 1,
                                              .code = code,
                                              .plan_from = plans[high >> 2]});
        }
        judge(world);
    }
    order(world, &(struct life_input){.event = LIFE_LEAVE}); /* no state without an exit */
    for (int i = 0; i < TURNS_MAX && life_duty(&world->life) != LIFE_DO_END; i++) {
        get_on(world, 0);
        judge(world);
    }
    FUZZ_CHECK(life_duty(&world->life) == LIFE_DO_END && world->life.state == LIFE_LEAVING);
    return 0;
}
