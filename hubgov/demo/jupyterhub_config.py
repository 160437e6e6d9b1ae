"""JupyterHub's configuration for the demo. A site's own hub needs only the two lines about hubgov."""

import os
from pathlib import Path

import hubgov
from hubgov.demo import proxy, settings
from hubgov.demo.authenticator import STATE_VARIABLE, DemoAuthenticator

c = get_config()  # type: ignore[name-defined]  # noqa: F821
state = Path(os.environ[STATE_VARIABLE])
demo = settings.load(state)
assert demo is not None

c.JupyterHub.bind_url = f"http://127.0.0.1:{demo.port}"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{demo.hub_port}"
c.JupyterHub.db_url = f"sqlite:///{state / 'jupyterhub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(state / "cookie_secret")
c.JupyterHub.authenticator_class = DemoAuthenticator
c.Authenticator.allowed_users = set(settings.PEOPLE)
c.Authenticator.admin_users = {"admin"}
c.JupyterHub.load_groups = {name: {"users": users} for name, users in settings.GROUPS.items()}
proxy.configure(c, state, demo)

# More than what waits attached (policy: max_attached) plus what really starts.
c.JupyterHub.concurrent_spawn_limit = 64
c.JupyterHub.proxy_check_interval = 5
c.JupyterHub.last_activity_interval = 60
c.Spawner.http_timeout = 60

# Lets `hubgov demo --down` stop servers, hub and proxy in order.
DOWN = ["list:users", "read:servers", "delete:servers", "shutdown"]
c.JupyterHub.services = [{"name": "hubgov-demo", "api_token": demo.control_token, "display": False}]
c.JupyterHub.load_roles = [{"name": "hubgov-demo", "services": ["hubgov-demo"], "scopes": DOWN}]

c.HubGov.state_dir = str(state)
c.HubGov.service_port = demo.service_port
c.HubGov.devices = demo.devices
c.HubGov.clock_rate = demo.clock_rate
c.HubGov.timezone = demo.timezone
c.HubGov.policy_file = demo.policy_file
# By the variable the service is known as the demo's: a hub that is killed leaves it behind.
hubgov.setup(c, admins=("admin",), approvers=("lena",), environment={STATE_VARIABLE: str(state)})
