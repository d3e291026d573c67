"""A Django service with one payment at a time for each order, in any number of processes.

    LOCKTENDER_URL=redis://localhost gunicorn --preload --workers 4 django_orders      # in this directory
    curl --request POST localhost:8000/orders/42/pay

SIGTERM shuts gunicorn down gracefully: its workers finish their requests, which releases their locks.
"""

import time

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.http import require_POST
from locktender import AcquireTimeoutError, Client, LockError, UnavailableError

settings.configure(ALLOWED_HOSTS=["localhost", "127.0.0.1"], ROOT_URLCONF=__name__)

client = Client()  # LOCKTENDER_URL; made before gunicorn forks, and every worker connects by itself


def refused(status: int, error: LockError) -> JsonResponse:
    return JsonResponse({"code": error.code}, status=status, headers={"Retry-After": "1"})


@require_POST
def pay(request: HttpRequest, order: int) -> JsonResponse:
    try:
        with client.lock(f"orders:{order}", wait=0.1) as hold:
            # The transaction ends within the lock: `with transaction.atomic()` belongs here, and ATOMIC_REQUESTS would end it too late.
            time.sleep(0.3)  # stands for the payment
            hold.check()  # before the write, whose database refuses older fences
            return JsonResponse({"order": order, "fence": hold.fence})
    except AcquireTimeoutError as busy:
        return refused(409, busy)
    except UnavailableError as down:
        return refused(503, down)


urlpatterns = [path("orders/<int:order>/pay", pay)]
application = get_wsgi_application()
