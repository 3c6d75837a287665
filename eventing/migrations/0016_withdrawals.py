"""Admissions that were taken back, and are to be told to the domain itself."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('eventing', '0015_watches'),
    ]

    operations = [
        migrations.AddField(
            model_name='replicaadmission',
            name='tell_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='replicaadmission',
            name='tell_until',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddIndex(
            model_name='replicaadmission',
            index=models.Index(condition=models.Q(('tell_at__isnull', False)), fields=['tell_at'], name='replica_admission_to_tell'),
        ),
    ]
